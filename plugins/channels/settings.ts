import { defineSettings } from '../../config/declaration.ts'
import { count, hostsAndPorts } from '../../config/fields.ts'
import type { ChannelSettings } from './contract.ts'

export default defineSettings<ChannelSettings>({
	description: 'Chat platforms that agents are reached by. Bots are set up over the API.',
	topic: 'The outside world',
	schema: (joi) =>
		joi.object<ChannelSettings>({
			allowed_api_roots: hostsAndPorts('Hosts that callers without the scope * may name in config.api_root.'),
			max_channels: count(1, 1000, 64, 'Channels that there may be.'),
			max_bindings: count(1, 100_000, 10_000, 'Chats that may be bound in one channel.'),
			retention_days: count(1, 365, 30, 'Days that the ids of messages are kept, to recognize one that comes twice.'),
			retry_max_s: count(1, 3600, 60, 'Seconds that the delays between attempts to connect grow to.'),
		}),
})
