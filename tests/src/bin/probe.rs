//! The probe as a program: `probe [--probe] [--knobs '{…}']`, MCP over stdin and stdout.

use steadfast_tests::probe;

fn main() {
    probe::run(std::env::args().skip(1))
}
