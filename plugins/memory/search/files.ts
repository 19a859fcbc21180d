/**
 * Stores graphs in files, since building one of 100,000 vectors takes half a minute. A file is a cache: it is loaded only if
 * it matches the checksum in its manifest (a damaged one can crash the loader); otherwise the graph is rebuilt.
 */
import { createHash, hash } from 'node:crypto'
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, readSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from '../../../core/util/replace-file.ts'
import type { Graph } from './graph.ts'

const FORMAT = 1
const CHUNK_BYTES = 1024 * 1024

export interface IndexManifest {
	format: number
	embedder: string
	dimensions: number
	/** The memory of each label of the graph; empty if deleted. */
	ids: string[]
	/** Checksum of the graph's file. */
	sha256: string
}

/** Both names of an agent's files begin with its uid, which is a UUID. */
export function filesOf(folder: string, uid: string): { graph: string; manifest: string } {
	return { graph: join(folder, `${uid}.usearch`), manifest: join(folder, `${uid}.json`) }
}

/** If it is interrupted, the manifest and the graph do not match, and both are ignored. */
export function saveGraph(
	folder: string,
	uid: string,
	graph: Graph,
	about: Omit<IndexManifest, 'format' | 'sha256'>,
): void {
	mkdirSync(folder, { recursive: true, mode: 0o700 })
	const files = filesOf(folder, uid)
	const graphFile = `${files.graph}.${process.pid}.tmp`
	try {
		closeSync(openSync(graphFile, 'w', 0o600)) // usearch would make it readable for all users
		graph.save(graphFile)
		sync(graphFile)
		const body: IndexManifest = { format: FORMAT, ...about, sha256: digestOf(graphFile) }
		const text = JSON.stringify(body)
		// If the manifest cannot be written, the old files stay valid.
		replaceFile(files.manifest, `${hash('sha256', text)}\n${text}`, {
			flush: true,
			ready: () => renameSync(graphFile, files.graph),
		})
	} finally {
		rmSync(graphFile, { force: true })
	}
}

/** Returns undefined and deletes both files unless they are valid and match `wanted`. */
export function readManifest(folder: string, uid: string, wanted: Pick<IndexManifest, 'embedder' | 'dimensions'>) {
	const files = filesOf(folder, uid)
	try {
		const manifest = manifestIn(files.manifest)
		if (manifest.format !== FORMAT || manifest.embedder !== wanted.embedder) throw new Error('of another kind')
		if (manifest.dimensions !== wanted.dimensions) throw new Error('of another kind')
		if (digestOf(files.graph) !== manifest.sha256) throw new Error('damaged')
		return manifest
	} catch {
		removeFiles(folder, uid)
		return undefined
	}
}

/** Throws if the file cannot be read or is damaged. */
export function manifestIn(file: string): IndexManifest {
	const [digest, body = ''] = readFileSync(file, 'utf8').split('\n')
	if (hash('sha256', body) !== digest) throw new Error('damaged')
	return JSON.parse(body) as IndexManifest
}

export function removeFiles(folder: string, uid: string): void {
	const { graph, manifest } = filesOf(folder, uid)
	rmSync(graph, { force: true })
	rmSync(manifest, { force: true })
}

function digestOf(file: string): string {
	const hash = createHash('sha256')
	const chunk = Buffer.alloc(CHUNK_BYTES)
	const handle = openSync(file, 'r')
	try {
		for (let read = readSync(handle, chunk); read > 0; read = readSync(handle, chunk)) {
			hash.update(chunk.subarray(0, read))
		}
	} finally {
		closeSync(handle)
	}
	return hash.digest('hex')
}

function sync(file: string): void {
	const handle = openSync(file, 'r+')
	fsyncSync(handle)
	closeSync(handle)
}
