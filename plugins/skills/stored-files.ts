/**
 * The files of a skill in the store: the document as one record, the listing of all files, and the concatenated bytes of the other
 * files in pieces. So a skill of any size is written and deleted in one commit. The store does not redact bytes, so they keep
 * matching the digest.
 *
 * A skill that is only a document has neither listing nor pieces.
 */
import type { AgentRef } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Key, Op, Store } from '../../core/store/ports.ts'
import { infoOf } from './file-kind.ts'
import type { FileInfo } from './file-kind.ts'
import { DOCUMENT } from './folder/contract.ts'
import type { SkillFile } from './folder/contract.ts'
import type { ListedFile } from './folder/digest.ts'

/** Bytes of a piece. A skill has at most 8 pieces. */
const PIECE = 1024 * 1024

const documentKey = (agent: AgentRef, id: string): Key => [agentScope(agent.uid), 'skill-text', id]
const listingKey = (agent: AgentRef, id: string): Key => [agentScope(agent.uid), 'skill-files', id]
const pieceKey = (agent: AgentRef, id: string, at: number): Key => [
	agentScope(agent.uid),
	'skill-bytes',
	id,
	String(at),
]

/** The writes that store the files of a skill; at most 10. */
export function storingFiles(agent: AgentRef, id: string, files: readonly SkillFile[]): Op[] {
	const ops: Op[] = []
	const bytes = Buffer.concat(files.filter((file) => file.path !== DOCUMENT).map((file) => file.bytes))
	for (const { path, bytes: document } of files)
		if (path === DOCUMENT) ops.push({ key: documentKey(agent, id), value: Buffer.from(document), expect: null })
	if (files.length > 1) ops.push({ key: listingKey(agent, id), value: files.map(infoOf), expect: null })
	for (let at = 0; at * PIECE < bytes.length; at++)
		ops.push({ key: pieceKey(agent, id, at), value: bytes.subarray(at * PIECE, (at + 1) * PIECE), expect: null })
	return ops
}

/** The writes that delete the files of a skill; at most 10. `size`: bytes of all files. */
export function erasingFiles(agent: AgentRef, id: string, size: number): Op[] {
	const pieces = Array.from({ length: Math.ceil(size / PIECE) }, (_, at) => pieceKey(agent, id, at))
	return [documentKey(agent, id), listingKey(agent, id), ...pieces].map((key) => ({ key, value: undefined }))
}

export async function readStoredDocument(store: Store, agent: AgentRef, id: string): Promise<Buffer | undefined> {
	const stored = (await store.get<Uint8Array>(documentKey(agent, id)))?.value
	return stored && Buffer.from(stored)
}

/** The listing from the installation; undefined if the document is the only file. */
export async function readListing(store: Store, agent: AgentRef, id: string): Promise<FileInfo[] | undefined> {
	return (await store.get<FileInfo[]>(listingKey(agent, id)))?.value
}

/** All files as they are stored now. Undefined if the document is missing. A file with missing bytes is shorter. */
export async function readFiles(store: Store, agent: AgentRef, id: string): Promise<SkillFile[] | undefined> {
	const [document, listing] = await Promise.all([readStoredDocument(store, agent, id), readListing(store, agent, id)])
	if (!document) return undefined
	if (!listing) return [{ path: DOCUMENT, bytes: document }]
	const others = listing.filter((file) => file.path !== DOCUMENT)
	const all = await readRange(store, agent, id, { from: 0, size: others.reduce((sum, file) => sum + file.size, 0) })
	let from = 0
	return listing.map(({ path, size }) => {
		if (path === DOCUMENT) return { path, bytes: document }
		from += size
		return { path, bytes: all.subarray(from - size, from) }
	})
}

/** The bytes of one file of a listing, not of the document. Fewer than its size if some are missing. */
export async function readStoredFile(
	store: Store,
	agent: AgentRef,
	id: string,
	listing: readonly ListedFile[],
	file: ListedFile,
): Promise<Buffer> {
	const before = listing.slice(0, listing.indexOf(file)).filter(({ path }) => path !== DOCUMENT)
	const from = before.reduce((sum, { size }) => sum + size, 0)
	return readRange(store, agent, id, { from, size: file.size })
}

async function readRange(
	store: Store,
	agent: AgentRef,
	id: string,
	{ from, size }: { from: number; size: number },
): Promise<Buffer> {
	const parts: Buffer[] = []
	for (let at = Math.floor(from / PIECE); at * PIECE < from + size; at++) {
		const piece = (await store.get<Uint8Array>(pieceKey(agent, id, at)))?.value
		if (!piece) break
		parts.push(Buffer.from(piece).subarray(Math.max(0, from - at * PIECE), from + size - at * PIECE))
	}
	return Buffer.concat(parts)
}
