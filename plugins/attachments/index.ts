import { definePlugin } from '../../core/plugin.ts'
import { attachmentsOf } from './attachments.ts'
import { collectHourly } from './collect.ts'
import type { Attachments, AttachmentSettings } from './contract.ts'
import { routes } from './routes.ts'

/** Attachments: images, files and recordings that come with messages, stored as blobs of their agent. */
export default definePlugin<AttachmentSettings, Attachments>({
	name: 'attachments',
	needs: ['auth', 'agents'],
	start(ctx) {
		collectHourly(ctx)
		return attachmentsOf(ctx)
	},
	http: routes,
})
