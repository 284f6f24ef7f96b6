// The run-time of the emulated device: the table of kernels, fibers, barriers, collectives.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/emulation.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace cuzk::emulation {

__thread Index3 thread_index, block_index, block_dimension, grid_dimension;

namespace {

constexpr unsigned WARP = 32;
constexpr unsigned MAX_THREADS = 1024;
constexpr size_t STACK_BYTES = 256 << 10;
// As much as one block can have on the largest of today's devices.
constexpr size_t MAX_SHARED_BYTES = 227 << 10;

// === Kernels by name ===

struct Kernel {
    const char *name;
    Entry entry;
    size_t params_bytes;
    unsigned max_threads;
    Kernel *next;
};

Kernel *kernels = nullptr;

const Kernel *find(const char *name, unsigned &count) {
    const Kernel *found = nullptr;
    count = 0;
    for (const Kernel *kernel = kernels; kernel != nullptr; kernel = kernel->next) {
        if (std::strcmp(kernel->name, name) == 0) {
            found = kernel;
            count++;
        }
    }
    return found;
}

// === Fibers ===

#if defined(__x86_64__)
// Saves the callee-saved registers and the stack pointer of the running context, and takes up
// another one where it left off.
extern "C" void cuzk_emulation_switch(void **save, void *to);
asm(R"(
    .text
    .globl cuzk_emulation_switch
    .type cuzk_emulation_switch, @function
cuzk_emulation_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size cuzk_emulation_switch, .-cuzk_emulation_switch
)");

struct Context {
    void *stack_pointer = nullptr;

    void prepare(char *stack_top, void (*entry)()) {
        // What `ret` and the function entered by it expect: six registers, the address, and a
        // stack that is 8 bytes off 16-byte alignment.
        void **top = reinterpret_cast<void **>(stack_top);
        top[-1] = nullptr;
        top[-2] = reinterpret_cast<void *>(entry);
        for (int i = 3; i <= 8; i++) top[-i] = nullptr;
        stack_pointer = top - 8;
    }

    static void change(Context &from, Context &to) {
        cuzk_emulation_switch(&from.stack_pointer, to.stack_pointer);
    }
};
#else
struct Context {
    ucontext_t context;

    void prepare(char *stack_top, void (*entry)()) {
        getcontext(&context);
        context.uc_stack.ss_sp = stack_top - STACK_BYTES;
        context.uc_stack.ss_size = STACK_BYTES;
        context.uc_link = nullptr;
        makecontext(&context, entry, 0);
    }

    static void change(Context &from, Context &to) { swapcontext(&from.context, &to.context); }
};
#endif

// One mapping for all stacks, each above a page that faults.
class Stacks {
  public:
    ~Stacks() {
        if (base_ != nullptr) munmap(base_, count_ * stride());
    }

    // The end of stack `i` of at least `count`; null when there is no memory.
    bool reserve(unsigned count) {
        if (count <= count_) return true;
        if (base_ != nullptr) munmap(base_, count_ * stride());
        base_ = nullptr;
        count_ = 0;
        void *base = mmap(nullptr, count * stride(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED) return false;
        base_ = static_cast<char *>(base);
        count_ = count;
        for (unsigned i = 0; i < count; i++) mprotect(base_ + i * stride(), page(), PROT_NONE);
        return true;
    }

    char *top(unsigned i) const { return base_ + (i + 1) * stride(); }

  private:
    static size_t page() { return size_t(sysconf(_SC_PAGESIZE)); }
    static size_t stride() { return STACK_BYTES + page(); }

    char *base_ = nullptr;
    unsigned count_ = 0;
};

enum class State { Ready, AtBarrier, InCollective, Ended };

struct Fiber {
    Context context;
    State state;
    // At a barrier.
    const char *file;
    int line;
    int predicate;
    int vote;
    // In a collective.
    Collective operation;
    unsigned mask;
    unsigned source;
    uint64_t value;
    uint64_t result;
};

// The launch that this thread runs.
struct Machine {
    Stacks stacks;
    std::vector<Fiber> fibers;
    Context scheduler;
    const Kernel *kernel;
    const void *params;
    unsigned threads;
    unsigned running;
    unsigned live;
    unsigned at_barrier;
    bool failed;
    std::string message;
    unsigned launches = 0;
    size_t shared_bytes;
    alignas(128) unsigned char shared[MAX_SHARED_BYTES];

    void fail(const std::string &text) {
        if (!failed) message = text;
        failed = true;
    }
};

thread_local Machine *machine = nullptr;

Machine &current() {
    static thread_local Machine storage;
    machine = &storage;
    return storage;
}

std::string place(const Fiber &fiber) {
    return std::string(fiber.file) + ":" + std::to_string(fiber.line);
}

// Gives the processor back; returns when this fiber may go on.
void leave(Fiber &fiber) { Context::change(fiber.context, machine->scheduler); }

void release_barrier(Vote vote) {
    Machine &m = *machine;
    const Fiber *first = nullptr;
    int any = 0, all = 1, count = 0;
    for (unsigned i = 0; i < m.threads; i++) {
        const Fiber &fiber = m.fibers[i];
        if (fiber.state != State::AtBarrier) continue;
        if (first == nullptr) first = &fiber;
        if (fiber.line != first->line || std::strcmp(fiber.file, first->file) != 0) {
            m.fail("threads of one block wait at two barriers: " + place(*first) + " and " + place(fiber));
            return;
        }
        any |= fiber.predicate;
        all &= fiber.predicate;
        count += fiber.predicate;
    }
    const int result = vote == Vote::Or ? any : vote == Vote::And ? all : count;
    for (unsigned i = 0; i < m.threads; i++) {
        Fiber &fiber = m.fibers[i];
        if (fiber.state != State::AtBarrier) continue;
        fiber.state = State::Ready;
        fiber.vote = result;
    }
    m.at_barrier = 0;
}

uint64_t reduce(Collective operation, uint64_t total, uint64_t value) {
    switch (operation) {
        case Collective::All:
        case Collective::And: return total & value;
        case Collective::Any:
        case Collective::Or: return total | value;
        case Collective::Xor: return total ^ value;
        case Collective::Add: return unsigned(total + value);
        case Collective::Min: return std::min(total, value);
        case Collective::Max: return std::max(total, value);
        default: return 0;
    }
}

// All lanes of the mask have come: works out what each gets and lets them go on.
void finish_collective(Fiber *warp, unsigned lanes, unsigned mask, Collective operation) {
    uint64_t total = 0;
    bool first = true;
    for (unsigned i = 0; i < lanes; i++) {
        if (!(mask >> i & 1)) continue;
        const uint64_t value = warp[i].value;
        if (operation == Collective::Ballot) {
            total |= value << i;
        } else {
            total = first ? value : reduce(operation, total, value);
        }
        first = false;
    }
    for (unsigned i = 0; i < lanes; i++) {
        if (!(mask >> i & 1)) continue;
        Fiber &fiber = warp[i];
        fiber.state = State::Ready;
        fiber.result = total;
        if (operation == Collective::Shuffle) {
            if (fiber.source >= lanes || !(mask >> fiber.source & 1)) {
                machine->fail("a shuffle reads lane " + std::to_string(fiber.source) +
                              ", which is not in its mask");
                continue;
            }
            fiber.result = warp[fiber.source].value;
        } else if (operation == Collective::MatchAny) {
            fiber.result = 0;
            for (unsigned j = 0; j < lanes; j++) {
                if (mask >> j & 1 && warp[j].value == fiber.value) fiber.result |= 1u << j;
            }
        }
    }
}

void end_fiber() {
    Machine &m = *machine;
    Fiber &fiber = m.fibers[m.running];
    fiber.state = State::Ended;
    m.live--;
    if (m.at_barrier > 0 && m.at_barrier == m.live) release_barrier(Vote::None);
    leave(fiber);
    std::abort();
}

void fiber_main() {
    machine->kernel->entry(machine->params);
    end_fiber();
}

std::string deadlock(const Machine &m) {
    std::string text = "threads wait for ever: ";
    unsigned shown = 0;
    for (unsigned i = 0; i < m.threads && shown < 4; i++) {
        const Fiber &fiber = m.fibers[i];
        char line[160];
        if (fiber.state == State::AtBarrier) {
            std::snprintf(line, sizeof line, "%sthread %u at the barrier %s", shown ? ", " : "", i,
                          place(fiber).c_str());
        } else if (fiber.state == State::InCollective) {
            std::snprintf(line, sizeof line, "%sthread %u in a warp collective of mask %08x",
                          shown ? ", " : "", i, fiber.mask);
        } else {
            continue;
        }
        text += line;
        shown++;
    }
    return text;
}

// Lets every lane go on that can; whether there was one.
bool run_warp(Machine &m, unsigned first, bool backwards) {
    const unsigned lanes = std::min(WARP, m.threads - first);
    bool progress = false;
    for (unsigned k = 0; k < lanes && !m.failed; k++) {
        const unsigned i = first + (backwards ? lanes - 1 - k : k);
        if (m.fibers[i].state != State::Ready) continue;
        progress = true;
        m.running = i;
        thread_index = {i, 0, 0};
        Context::change(m.scheduler, m.fibers[i].context);
    }
    return progress;
}

void run_block(Machine &m, unsigned block, bool backwards) {
    block_index = {block, 0, 0};
    std::memset(m.shared, 0xa5, m.shared_bytes);
    m.live = m.threads;
    m.at_barrier = 0;
    for (unsigned i = 0; i < m.threads; i++) {
        m.fibers[i].state = State::Ready;
        m.fibers[i].context.prepare(m.stacks.top(i), fiber_main);
    }
    const unsigned warps = (m.threads + WARP - 1) / WARP;
    while (m.live > 0 && !m.failed) {
        bool progress = false;
        for (unsigned k = 0; k < warps; k++) {
            const unsigned warp = backwards ? warps - 1 - k : k;
            // Until it waits for others: most collectives follow one another.
            while (run_warp(m, warp * WARP, backwards)) progress = true;
        }
        if (!progress && m.live > 0) m.fail(deadlock(m));
    }
}

}  // namespace

Registration::Registration(const char *name, Entry entry, size_t params_bytes, unsigned max_threads) {
    kernels = new Kernel{name, entry, params_bytes, max_threads, kernels};
}

int barrier(Vote vote, int predicate, const char *file, int line) {
    Machine &m = *machine;
    Fiber &fiber = m.fibers[m.running];
    fiber.state = State::AtBarrier;
    fiber.file = file;
    fiber.line = line;
    fiber.predicate = predicate;
    m.at_barrier++;
    if (m.at_barrier == m.live) release_barrier(vote);
    leave(fiber);
    return fiber.vote;
}

uint64_t collective(Collective operation, unsigned mask, uint64_t value, unsigned source) {
    Machine &m = *machine;
    const unsigned lane = m.running % WARP;
    Fiber *warp = &m.fibers[m.running - lane];
    const unsigned lanes = std::min(WARP, m.threads - (m.running - lane));
    // A short last warp: the lanes that do not exist are not waited for.
    const unsigned present = lanes == WARP ? ~0u : (1u << lanes) - 1;
    Fiber &fiber = warp[lane];
    if (!(mask >> lane & 1)) {
        m.fail("thread " + std::to_string(m.running) + " is not in the mask of its collective");
        leave(fiber);
    }
    fiber.state = State::InCollective;
    fiber.operation = operation;
    fiber.mask = mask;
    fiber.value = value;
    fiber.source = source;
    const auto missing = [&](unsigned i) {
        const Fiber &other = warp[i];
        return (mask >> i & 1) && !(other.state == State::InCollective && other.mask == mask &&
                                    other.operation == operation);
    };
    // In either order, all but the last to come see it by one of their neighbours.
    bool complete = !missing((lane + 1) % lanes) && !missing((lane + lanes - 1) % lanes);
    for (unsigned i = 0; i < lanes && complete; i++) complete = !missing(i);
    if (complete) finish_collective(warp, lanes, mask & present, operation);
    leave(fiber);
    return fiber.result;
}

void *dynamic_shared() { return machine->shared; }

void trap(const char *file, int line) {
    Machine &m = *machine;
    m.fail(std::string("trap at ") + file + ":" + std::to_string(line));
    leave(m.fibers[m.running]);
    std::abort();
}

}  // namespace cuzk::emulation

using namespace cuzk::emulation;

// How many kernels have this name; the properties of one of them.
extern "C" unsigned cuzk_emulation_find(const char *name, size_t *params_bytes, unsigned *max_threads) {
    unsigned count = 0;
    const Kernel *kernel = find(name, count);
    if (kernel != nullptr) {
        *params_bytes = kernel->params_bytes;
        *max_threads = kernel->max_threads;
    }
    return count;
}

// Runs a kernel; 0, or 1 with a text in `message`. The caller has checked the sizes against
// cuzk_emulation_find and the limits against cuzk_emulation_limits.
extern "C" int cuzk_emulation_launch(const char *name, const void *params, unsigned blocks,
                                     unsigned threads, size_t shared_bytes, char *message,
                                     size_t message_bytes) {
    unsigned count = 0;
    Machine &m = current();
    m.kernel = find(name, count);
    m.params = params;
    m.threads = threads;
    m.shared_bytes = shared_bytes;
    m.failed = false;
    if (m.kernel == nullptr || threads == 0 || threads > MAX_THREADS ||
        shared_bytes > MAX_SHARED_BYTES || !m.stacks.reserve(threads)) {
        std::snprintf(message, message_bytes, "no such kernel, or no memory for its threads");
        return 1;
    }
    if (m.fibers.size() < threads) m.fibers.resize(threads);
    block_dimension = {threads, 1, 1};
    grid_dimension = {blocks, 1, 1};
    m.launches++;
    for (unsigned block = 0; block < blocks && !m.failed; block++) {
        run_block(m, block, (block + m.launches) % 2 == 0);
    }
    if (m.failed) std::snprintf(message, message_bytes, "block %u: %s", block_index.x, m.message.c_str());
    return m.failed ? 1 : 0;
}

extern "C" void cuzk_emulation_limits(unsigned *max_threads, size_t *max_shared_bytes) {
    *max_threads = MAX_THREADS;
    *max_shared_bytes = MAX_SHARED_BYTES;
}
