import type { ChatMessage } from '../../core/protocol.ts'
import type { AttachmentSource } from '../attachments/contract.ts'
import type { OpenRequest, OpenRequests, StreamSettings } from '../auth/contract.ts'

export interface OpenAiSettings extends StreamSettings {
	/** Whether the field `user` of a request names a stored conversation. Otherwise it is ignored. */
	user_is_conversation: boolean
	/** Limit of concurrent requests, streams included; further ones get 503. */
	max_open: number
}

export interface OpenAiApi {
	readonly open: OpenRequests<OpenRequest>
}

/** A message as in a request: system messages may be anywhere. `sources`: where its attachments are. */
export type RequestMessage = (ChatMessage & { sources?: AttachmentSource[] }) | { role: 'system'; content: string }

/** The same, with stored attachments of the agent. */
export type StoredMessage = ChatMessage | { role: 'system'; content: string }

declare module '../../core/plugin.ts' {
	interface Services {
		'openai-api': OpenAiApi
	}
}

declare module '../../config/types.ts' {
	interface Config {
		'openai-api': OpenAiSettings
	}
}
