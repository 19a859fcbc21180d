import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count, hostsAndPorts } from '../../config/fields.ts'
import type { AttachmentSettings } from './contract.ts'

export default defineSettings<AttachmentSettings>({
	description: 'Images, files and recordings in messages.',
	topic: 'What agents can do',
	schema: () =>
		allSettings<AttachmentSettings>({
			max_mib: count(1, 100, 20, 'Size limit of one attachment, in MiB.'),
			max_mib_per_message: count(1, 200, 40, 'Size limit of all attachments of one message together, in MiB.'),
			max_per_message: count(1, 32, 16, 'Maximum number of attachments of one message.'),
			max_mib_per_agent: count(1, 1_048_576, 2048, 'Size limit of all stored attachments of one agent, in MiB.'),
			allowed_hosts: hostsAndPorts('Hosts at private addresses from which attachments may be fetched.'),
		}),
	check({ max_mib, max_mib_per_message }) {
		if (max_mib_per_message >= max_mib) return []
		const message = `attachments.max_mib_per_message (${max_mib_per_message}) must be at least attachments.max_mib (${max_mib})`
		return [{ path: 'max_mib_per_message', message }]
	},
})
