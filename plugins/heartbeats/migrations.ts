import { addFields, ofEachAgent } from '../../core/upgrade/migration.ts'
import type { Migration } from '../../core/upgrade/migration.ts'
import type { HeartbeatRecord } from './records.ts'

/** Fields that records of version 0.1.0 lack. */
const DEFAULTS = { at: null, paused: false, destination: { deliver: 'none' } } satisfies Partial<HeartbeatRecord>

const wholeRecords: Migration = {
	name: 'heartbeats-whole',
	about: 'heartbeats',
	format: 2,
	places: (store) => ofEachAgent(store, ['heartbeat']),
	convert: (entries) => addFields(entries, DEFAULTS),
}

export default [wholeRecords]
