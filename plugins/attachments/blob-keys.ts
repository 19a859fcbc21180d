import type { AgentRef } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Key } from '../../core/store/ports.ts'

type Uid = AgentRef['uid']

/** All in the agent's scope: they are deleted with the agent, and one commit can change them together with a run. */
export const keys = {
	blob: (uid: Uid, digest: string): Key => [agentScope(uid), 'blob', digest],
	blobs: (uid: Uid): Key => [agentScope(uid), 'blob'],
	/** Bytes by upload, so that the deletion of an upload never affects another one with the same content. */
	piece: (uid: Uid, upload: string, at: number): Key => [
		agentScope(uid),
		'blob-bytes',
		upload,
		String(at).padStart(5, '0'),
	],
	pieces: (uid: Uid, upload: string): Key => [agentScope(uid), 'blob-bytes', upload],
	/** An upload whose bytes belong to no blob: it is in progress, or its blob was deleted. */
	loose: (uid: Uid, upload: string): Key => [agentScope(uid), 'blob-loose', upload],
	allLoose: (uid: Uid): Key => [agentScope(uid), 'blob-loose'],
	/** The blobs that a run refers to. */
	uses: (uid: Uid, run: string): Key => [agentScope(uid), 'blob-uses', run],
	total: (uid: Uid): Key => [agentScope(uid), 'blob-total'],
}

export interface BlobRecord {
	/** The upload that wrote its bytes. */
	upload: string
	pieces: number
	/** Bytes. */
	size: number
	media_type: string
	/** Number of runs that use it. */
	uses: number
	/** When it was uploaded, ISO 8601. A repeated upload renews the time while no run uses the blob. */
	at: string
}

export interface LooseRecord {
	at: string
	/** Its blob was deleted, so the bytes can be deleted at once. */
	deleted?: true
}

export interface UsesRecord {
	/** Without the name of the algorithm. */
	digests: string[]
}

export interface TotalRecord {
	/** Of all blobs of the agent. */
	bytes: number
}

const NAME = /^sha256:([0-9a-f]{64})$/

/** The hexadecimal digest in a blob's name; undefined for other texts. */
export function digestIn(blob: string): string | undefined {
	return NAME.exec(blob)?.[1]
}

export function blobName(digest: string): string {
	return `sha256:${digest}`
}
