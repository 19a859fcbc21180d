/**
 * Loaded into every test file (test/batches/run.ts). tap's runner would load itself into each process that a test starts, and into
 * theirs: that slows gateways down, and the processes for skills' code, which may read no file, refuse to start.
 */
import processOnSpawn from 'process-on-spawn'

processOnSpawn.removeAllListeners()
delete process.env.NODE_OPTIONS
