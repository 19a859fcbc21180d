/**
 * Loaded into every test file (test/batches/run.ts). tap's runner would load itself into all processes that a test starts, directly or
 * indirectly. That would slow down gateways, and skill hosts, which may not read files, would not start.
 */
import processOnSpawn from 'process-on-spawn'

processOnSpawn.removeAllListeners()
delete process.env.NODE_OPTIONS
