import type { AgentRef } from '../../core/plugin.ts'
import type { Attachment } from '../../core/protocol.ts'
import type { Op } from '../../core/store/ports.ts'
import type { OpenRequest, OpenRequests } from '../auth/contract.ts'

/** Where the bytes of an attachment are. */
export type AttachmentSource = {
	/** The sender's name for the file. */
	name?: string | undefined
	/** The type according to the sender; the bytes take precedence. */
	media_type?: string | undefined
	/** Length of a recording. */
	seconds?: number | undefined
} & ({ bytes: Uint8Array } | { data: string } | { url: string } | { blob: string })

export interface Attachments {
	/**
	 * The attachments of one message, stored: given as bytes, as `data` (base64, or a data: URL), as the address of a file at a
	 * public address, or as a blob that the agent has. They belong to no run yet: without `StartRequest.attachments` they are
	 * deleted after an hour. Throws `invalid_request`, `payload_too_large`, `address_refused`, `unavailable`.
	 */
	take(agent: AgentRef, sources: readonly AttachmentSource[]): Promise<Attachment[]>
	/** Stores bytes as they arrive. Throws `invalid_request`, `payload_too_large`. */
	upload(
		agent: AgentRef,
		bytes: AsyncIterable<Uint8Array>,
		about: Pick<AttachmentSource, 'name' | 'media_type'>,
	): Promise<Attachment>
	/** Uploads over HTTP that are in progress. */
	readonly uploads: OpenRequests<OpenRequest>
	readonly limits: AttachmentSettings
	readonly blobs: Blobs
}

/** Stored bytes by their content, in the scope of their agent. A blob lives for as long as a run uses it. */
export interface Blobs {
	/** All bytes of a blob; undefined if the agent has no such blob, or is being deleted. */
	read(uid: AgentRef['uid'], blob: string): Promise<Uint8Array | undefined>
	/**
	 * The writes by which a run uses the blobs of attachments: two for each new one, of which the first 32 count. To be committed
	 * with what refers to them. `missing`: blobs among them that do not exist any more.
	 */
	use(
		uid: AgentRef['uid'],
		run_id: string,
		attachments: Iterable<Pick<Attachment, 'blob'>>,
	): Promise<{ ops: Op[]; missing: string[] }>
	/** The blobs that a run uses. */
	usedBy(uid: AgentRef['uid'], run_id: string): Promise<Blob[]>
	/** Ends the uses of a deleted run. Blobs that no other run uses are deleted. May be repeated after a crash. */
	release(uid: AgentRef['uid'], run_id: string): Promise<void>
}

export interface Blob {
	/** `sha256:` and 64 hexadecimal digits. */
	blob: string
	media_type: string
	/** Bytes. */
	size: number
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
