//! Everything that must hold of the scheduler's state at any time, computed anew from the parts.

use std::collections::BTreeSet;

use super::Scheduler;
use super::device::LeasePhase;
use super::event::LeaseId;
use super::job::{Class, Phase, UnitState};

impl Scheduler {
    /// Panics if an invariant does not hold.
    pub(super) fn audit(&self) {
        self.audit_memory();
        self.audit_jobs();
        self.audit_leases();
        self.audit_devices();
        self.audit_names();
    }

    fn audit_memory(&self) {
        let all: u64 = self.leases.values().map(|lease| lease.bytes).sum();
        let below: u64 = self
            .leases
            .values()
            .filter(|l| !l.lane)
            .map(|l| l.bytes)
            .sum();
        assert_eq!(self.memory_used, all, "memory in use");
        assert_eq!(
            self.memory_used_below_lane, below,
            "memory in use below the lane"
        );
    }

    fn audit_jobs(&self) {
        let (mut jobs, mut bytes, mut queued) = (0, 0, 0);
        for job in self.jobs.values() {
            let count = |state| job.units.iter().filter(|unit| unit.state == state).count();
            assert_eq!(
                job.ready,
                count(UnitState::Ready),
                "{}: ready units",
                job.name
            );
            assert_eq!(
                job.proven,
                count(UnitState::Proven),
                "{}: proven units",
                job.name
            );
            assert_eq!(
                self.queue.contains(job),
                job.is_queued(),
                "{}: in the queue",
                job.name
            );
            assert_eq!(
                job.units.is_empty(),
                !job.is_open(),
                "{}: units kept",
                job.name
            );
            queued += usize::from(job.is_queued());
            if job.is_open() && job.class() != Class::Lane {
                jobs += 1;
                bytes += job.payload_bytes;
            }
            if let Phase::Assembling { limit } = job.phase {
                assert_eq!(
                    job.proven,
                    job.units.len(),
                    "{}: assembled too early",
                    job.name
                );
                assert!(self.assembling.contains(&(limit, job.id)));
            }
        }
        for (kind, counts) in self.counts() {
            let open = self
                .jobs
                .values()
                .filter(|job| job.is_open() && job.circuit.kind == kind);
            let (started, waiting): (Vec<_>, Vec<_>) = open.partition(|job| job.started);
            let found = (counts.in_progress as usize, counts.pending as usize);
            assert_eq!(found, (started.len(), waiting.len()), "open jobs of {kind}");
        }
        assert_eq!(self.open_jobs_below_lane, jobs, "open jobs");
        assert_eq!(self.open_bytes_below_lane, bytes, "open payload bytes");
        assert_eq!(self.queue.len(), queued, "the queue holds nothing else");
        for (_, id) in self.deadlines.iter().chain(&self.assembling) {
            assert!(self.jobs[id].is_open(), "timers of open jobs only");
        }
    }

    fn audit_leases(&self) {
        let mut units = BTreeSet::new();
        for (id, lease) in &self.leases {
            let job = self.jobs.get(&lease.unit.job);
            let holds = job
                .filter(|job| job.attempt == lease.unit.attempt && job.is_open())
                .and_then(|job| job.units.get(lease.unit.index as usize))
                .is_some_and(|unit| unit.state == UnitState::Leased(*id));
            assert_eq!(
                holds, !lease.orphan,
                "a lease holds its unit or is an orphan"
            );
            if !lease.orphan {
                assert!(units.insert(lease.unit), "two leases hold one unit");
            }
        }
        let leased = |job: &super::job::Job| {
            let leased = |unit: &super::job::Unit| matches!(unit.state, UnitState::Leased(_));
            job.units.iter().filter(|unit| leased(unit)).count()
        };
        assert_eq!(
            units.len(),
            self.jobs.values().map(leased).sum::<usize>(),
            "leased units"
        );
    }

    fn audit_devices(&self) {
        for device in self.devices.values() {
            let of = |wanted: fn(LeasePhase) -> bool| -> BTreeSet<_> {
                let mine = self
                    .leases
                    .iter()
                    .filter(|(_, lease)| lease.device == device.id);
                mine.filter(|(_, lease)| wanted(lease.phase))
                    .map(|(&id, _)| id)
                    .collect()
            };
            let running = of(|phase| matches!(phase, LeasePhase::Running { .. }));
            let on_device = device.running.iter().chain(&device.finishing);
            assert_eq!(running, on_device.copied().collect(), "what runs is leased");
            assert_eq!(
                running.len(),
                device.running.len() + device.finishing.len(),
                "a unit runs once"
            );
            assert!(
                device.running.len() <= device.at_a_time_most + device.lane_places,
                "no more units on a device than it takes"
            );
            let lane = |id: &&LeaseId| self.is_of_lane(**id);
            let of_lane = device.running.iter().filter(lane).count();
            assert!(
                device.running.len() - of_lane <= device.at_a_time_most,
                "no unit on a place of the lane"
            );
            let prepared = of(|phase| phase == LeasePhase::Prepared);
            assert_eq!(prepared, device.prepared.iter().copied().collect());
            let discarding = of(|phase| matches!(phase, LeasePhase::Discarding { .. }));
            assert_eq!(discarding.len(), device.discarding);
            let lane = self.prepared_in_lane(device.id).count();
            assert!(
                lane.max(device.prepared.len() - lane) <= device.look_ahead,
                "no more look-ahead than given, in the lane and below it"
            );
        }
    }

    fn audit_names(&self) {
        assert_eq!(self.names.len(), self.jobs.len(), "one name per job");
        for (name, id) in &self.names {
            assert_eq!(&self.jobs[id].name, name);
        }
        let with_id = self
            .jobs
            .values()
            .filter(|job| !job.request_id.is_empty())
            .count();
        assert_eq!(
            self.identities.len(),
            with_id,
            "one identity per job with a request id"
        );
        assert_eq!(
            self.requests.values().map(BTreeSet::len).sum::<usize>(),
            with_id
        );
    }
}
