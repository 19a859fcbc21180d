/** The checks of `svc doctor` with Discord. */
import type { DoctorFile } from '../../core/cli/doctor/contract.ts'
import { API_ROOT, TOKEN } from './config.ts'

/** Bits of an application's flags: the intent for those in many servers, and for the others. */
const MESSAGE_CONTENT = (1 << 18) | (1 << 19)

const fromPortal =
	'create a new token in the developer portal (Bot, Reset Token), and copy it into the secret of the channel: svc vault set NAME'

export default {
	bots: {
		async chat_b({ token, config: { api_root = API_ROOT } }, context) {
			if (!TOKEN.test(token)) return { message: 'it is not a bot token', fix: fromPortal }
			const root = String(api_root).replace(/\/+$/, '')
			const { status, body } = await context.ask(`${root}/v10/applications/@me`, {
				headers: { authorization: `Bot ${token}` },
			})
			if (status === 401) return { message: 'Discord does not know it (401)', fix: fromPortal }
			const { flags } = (body ?? {}) as { flags?: unknown }
			if (status !== 200 || typeof flags !== 'number' || (flags & MESSAGE_CONTENT) !== 0) return null
			return {
				message: 'its application receives only the text of direct messages and mentions',
				fix: 'switch on "Message Content Intent" in the developer portal (Bot, Privileged Gateway Intents)',
			}
		},
	},
} satisfies DoctorFile
