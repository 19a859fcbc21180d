import type { AgentRef } from '../../core/plugin.ts'
import type { Attachment } from '../../core/protocol.ts'
import type { Op } from '../../core/store/ports.ts'
import type { OpenRequest, OpenRequests } from '../auth/contract.ts'

/** Where to load an attachment from. */
export type AttachmentSource = {
	/** The sender's name for the file. */
	name?: string | undefined
	/** The type according to the sender. The signature of the bytes takes precedence. */
	media_type?: string | undefined
	/** Duration of a recording. */
	seconds?: number | undefined
} & ({ bytes: Uint8Array } | { data: string } | { url: string } | { blob: string })

export interface Attachments {
	/**
	 * Stores the attachments of one message: bytes, `data` (base64, or a data: URL), the URL of a file at a public address, or a
	 * blob that the agent has. Blobs that no run uses (`StartRequest.attachments`) are deleted after an hour. Throws
	 * `invalid_request`, `payload_too_large`, `address_refused`, `unavailable`.
	 */
	take(agent: AgentRef, sources: readonly AttachmentSource[]): Promise<Attachment[]>
	/** Stores bytes as they arrive. Throws `invalid_request`, `payload_too_large`. */
	upload(
		agent: AgentRef,
		bytes: AsyncIterable<Uint8Array>,
		about: Pick<AttachmentSource, 'name' | 'media_type'>,
	): Promise<Attachment>
	/** The current uploads over HTTP. */
	readonly uploads: OpenRequests<OpenRequest>
	readonly limits: AttachmentSettings
	readonly blobs: Blobs
}

/** Stored bytes of an agent, identified by their digest. A blob is kept as long as a run uses it. */
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
	/** Removes the uses of a deleted run, and deletes blobs that no other run uses. Idempotent. */
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
