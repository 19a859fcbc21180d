import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count, hostsAndPorts } from '../../config/fields.ts'
import type { ChannelSettings } from './contract.ts'

export default defineSettings<ChannelSettings>({
	description: 'Chat platforms on which people talk to agents. Bots are set up with the API.',
	topic: 'The outside world',
	schema: () =>
		allSettings<ChannelSettings>({
			allowed_api_roots: hostsAndPorts('Hosts that callers without the scope * may name in config.api_root.'),
			max_channels: count(1, 1000, 64, 'Maximum number of channels.'),
			max_bindings: count(1, 100_000, 10_000, 'Maximum number of bound chats per channel.'),
			retention_days: count(
				1,
				365,
				30,
				'Days for which the ids of messages are kept, to recognize messages that are delivered twice.',
			),
			retry_max_s: count(1, 3600, 60, 'Longest delay between attempts to connect, in seconds.'),
		}),
})
