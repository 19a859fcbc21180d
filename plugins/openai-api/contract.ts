import type { ChatMessage } from '../../core/protocol.ts'
import type { AttachmentSource } from '../attachments/contract.ts'
import type { OpenRequest, OpenRequests, StreamSettings } from '../auth/contract.ts'

export interface OpenAiSettings extends StreamSettings {
	/** Whether the field `user` of a request names a stored conversation. Otherwise it is ignored. */
	user_is_conversation: boolean
	/** Maximum number of concurrent requests, including streams; further ones get 503. */
	max_open: number
}

export interface OpenAiApi {
	readonly open: OpenRequests<OpenRequest>
}

/** A message of a request. System messages may be anywhere. `sources`: where to load its attachments from. */
export type RequestMessage = (ChatMessage & { sources?: AttachmentSource[] }) | { role: 'system'; content: string }

/** As `RequestMessage`, with attachments that the agent has stored. */
export type StoredMessage = ChatMessage | { role: 'system'; content: string }

declare module '../../config/types.ts' {
	interface Config {
		'openai-api': OpenAiSettings
	}
}
