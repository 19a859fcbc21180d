import type { AgentRef } from '../../core/plugin.ts'
import type { Attachment } from '../../core/protocol.ts'

/** Where the bytes of an attachment are. */
export type AttachmentSource = {
	/** As the sender names the file. */
	name?: string | undefined
	/** What the sender says that it is; the bytes decide. */
	media_type?: string | undefined
	/** Length of a recording. */
	seconds?: number | undefined
} & ({ bytes: Uint8Array } | { data: string } | { url: string } | { blob: string })

export interface Attachments {
	/**
	 * The attachments of one message, stored: given as bytes, as `data` (base64, or a data: URL), as the address of a file at a
	 * public address, or as a blob that the agent has. They belong to no run yet: `StartRequest.attachments` makes them stay,
	 * or they are deleted an hour later. Throws `invalid_request`, `payload_too_large`, `address_refused`, `unavailable`.
	 */
	take(agent: AgentRef, sources: readonly AttachmentSource[]): Promise<Attachment[]>
	/** Stores bytes as they come. Throws `invalid_request`, `payload_too_large`. */
	upload(
		agent: AgentRef,
		bytes: AsyncIterable<Uint8Array>,
		about: Pick<AttachmentSource, 'name' | 'media_type'>,
	): Promise<Attachment>
	readonly limits: AttachmentSettings
}

export interface AttachmentSettings {
	max_mib: number
	max_mib_per_message: number
	max_per_message: number
	max_mib_per_agent: number
	allowed_hosts: string[]
}

declare module '../../core/plugin.ts' {
	interface Services {
		attachments: Attachments
	}
}
