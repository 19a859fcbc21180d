import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count, flag, heartbeat, stallTimeout } from '../../config/fields.ts'
import type { OpenAiSettings } from './contract.ts'

/** OpenAI's paths, including those that this gateway does not support. */
export const openAiPaths =
	/^\/v1\/(assistants|audio|batches|chat|completions|containers|conversations|embeddings|engines|evals|files|fine_tuning|images|models|moderations|realtime|responses|threads|uploads|vector_stores|videos)(\/|$)/

export default defineSettings<OpenAiSettings>({
	description: 'Agents as models of an OpenAI-compatible API. Off by default.',
	onByDefault: false,
	answersAt: openAiPaths,
	topic: 'Addresses and access',
	schema: () =>
		allSettings<OpenAiSettings>({
			user_is_conversation: flag(
				false,
				'Whether the field user names a stored conversation. All chats of a person are then one conversation.',
			),
			max_open: count(
				1,
				20_000,
				1_000,
				'Maximum number of concurrent requests; the next one gets 503. One token may have four fifths of them.',
			),
			heartbeat_s: heartbeat(),
			stall_timeout_s: stallTimeout(),
		}),
})
