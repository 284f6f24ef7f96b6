//! Prints how fast the arithmetic is by itself on the first GPU.

use cuda::{Device, rates};

fn main() -> Result<(), cuda::CudaError> {
    let device = Device::open(0)?;
    let info = device.info();
    println!("{}, {} multiprocessors", info.name, info.multiprocessors);
    println!("operation                           per second  share  regs  local  threads/SM");
    for rate in rates::measure(&device, 5)? {
        let share = rate
            .share
            .map_or("-".into(), |s| format!("{:.1} %", 100.0 * s));
        println!(
            "{:34} {:>11.4e} {share:>6}  {:>4}  {:>5}  {:>10}",
            rate.name, rate.per_second, rate.registers, rate.local_bytes, rate.threads
        );
    }
    Ok(())
}
