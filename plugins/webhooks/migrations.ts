import { addFields, ofEachAgent } from '../../core/upgrade/migration.ts'
import type { Migration } from '../../core/upgrade/migration.ts'
import type { WebhookRecord } from './records.ts'

/** Version 0.1.0 delivered no answers. */
const DEFAULTS = { destination: { deliver: 'none' } } satisfies Partial<WebhookRecord>

const destinations: Migration = {
	name: 'webhook-destinations',
	about: 'webhooks',
	format: 2,
	places: (store) => ofEachAgent(store, ['webhook']),
	convert: (entries) => addFields(entries, DEFAULTS),
}

export default [destinations]
