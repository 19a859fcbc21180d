import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count, heartbeat, stallTimeout } from '../../config/fields.ts'
import type { ChatSettings } from './contract.ts'

export default defineSettings<ChatSettings>({
	description: 'Limits of the chat API.',
	topic: 'Addresses and access',
	schema: () =>
		allSettings<ChatSettings>({
			max_waiting: count(1, 20_000, 1_000, 'Requests that wait for their replies at the same time, streams included.'),
			max_sockets: count(1, 20_000, 1_000, 'WebSockets that may be open at the same time.'),
			heartbeat_s: heartbeat(),
			ping_s: count(1, 300, 30, 'Seconds between the pings of a WebSocket.'),
			stall_timeout_s: stallTimeout(),
		}),
})
