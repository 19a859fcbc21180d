/** The checks of `svc doctor` with Telegram. */
import type { DoctorFile } from '../../core/cli/doctor/contract.ts'
import { API_ROOT, TOKEN } from './config.ts'

const fromBotFather = 'copy the token that @BotFather shows into the secret of the channel: svc vault set NAME'

export default {
	bots: {
		async chat_a({ token, config: { api_root = API_ROOT } }, context) {
			if (!TOKEN.test(token)) return { message: 'it is not a bot token such as 123456:ABC-DEF', fix: fromBotFather }
			const root = String(api_root).replace(/\/+$/, '')
			const { status } = await context.ask(`${root}/bot${token}/getMe`)
			const isKnown = status !== 401 && status !== 404
			return isKnown ? null : { message: `Telegram does not know it (${status})`, fix: fromBotFather }
		},
	},
} satisfies DoctorFile
