import type { OpenRequest, OpenRequests } from '../../core/open-requests.ts'
import type { ChatMessage } from '../../core/protocol.ts'
import type { Credentials } from '../auth/contract.ts'

export interface OpenAiSettings {
	/** The field `user` of a request names a conversation that the gateway keeps. Otherwise it means nothing. */
	user_is_conversation: boolean
	/** Requests that may be under way at the same time, streams included; the next one is answered with 503. */
	max_open: number
	/** Seconds after which a stream without a word gets a comment, for the proxies on its way. */
	heartbeat_s: number
	/** Seconds for which the client of a stream may take nothing of what waits for it. */
	stall_timeout_s: number
}

export interface OpenAiApi {
	readonly open: OpenRequests<Credentials, OpenRequest<Credentials>>
}

/** A message as a request has it: system messages may stand anywhere. */
export type RequestMessage = ChatMessage | { role: 'system'; content: string }

declare module '../../core/plugin.ts' {
	interface Services {
		'openai-api': OpenAiApi
	}
}
