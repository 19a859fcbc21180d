import { definePlugin } from '../../core/plugin.ts'
import type {} from '../agents/contract.ts'
import { attachmentsOf } from './attachments.ts'
import { collectBlobs } from './blob-uses.ts'
import type { Attachments, AttachmentSettings } from './contract.ts'
import { routes } from './routes.ts'

const HOUR_MS = 3_600_000

/** Attachments: images, files and recordings in messages, stored as blobs of their agent. */
export default definePlugin<AttachmentSettings, Attachments>({
	name: 'attachments',
	needs: ['auth', 'agents'],
	start(ctx) {
		/** Deletes the rest of interrupted uploads and deletions, and attachments that no run uses. */
		const collect = async (): Promise<void> => {
			const before = new Date(Date.now() - HOUR_MS).toISOString()
			for await (const { uid } of ctx.use('agents').list()) {
				if (ctx.signal.aborted) return
				await collectBlobs(ctx.store, uid, before)
			}
		}
		ctx.after(1, collect)
		ctx.every(HOUR_MS, collect)
		return attachmentsOf(ctx)
	},
	http: routes,
})
