import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count, heartbeat, stallTimeout } from '../../config/fields.ts'
import type { EventSettings } from './contract.ts'

export default defineSettings<EventSettings>({
	description: 'The event log, and the streams that show it.',
	topic: 'Data and log',
	schema: () =>
		allSettings<EventSettings>({
			retention_days: count(1, 3650, 30, 'Days that events are kept.'),
			max_streams: count(
				1,
				20_000,
				10_000,
				'Maximum number of open event streams; the next one gets 503. One token may have four fifths of them.',
			),
			heartbeat_s: heartbeat(),
			stall_timeout_s: stallTimeout(),
		}),
})
