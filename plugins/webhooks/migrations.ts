import type { Entry, Op } from '../../core/store/ports.ts'
import { ofEachAgent } from '../../core/upgrade/migration.ts'
import type { Migration } from '../../core/upgrade/migration.ts'
import type { WebhookRecord } from './records.ts'

/** Version 0.1.0 delivered no answers. */
const destinations: Migration = {
	name: 'webhook-destinations',
	about: 'webhooks',
	format: 2,
	places: (store) => ofEachAgent(store, ['webhook']),
	convert: (entries) =>
		(entries as Entry<object>[]).flatMap(({ key, value, rev }): Op[] =>
			'destination' in value
				? []
				: [
						{
							key,
							value: { ...value, destination: { deliver: 'none' } satisfies WebhookRecord['destination'] },
							expect: rev,
						},
					],
		),
}

export default [destinations]
