/** The bare counterpart of long-term memory: LMDB for the text, usearch for the vectors, nothing else. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'lmdb'
import usearch from 'usearch'
import { HASHING_DIMENSIONS, hashTerms } from '../../../plugins/memory/hashing.ts'
import { termsOf } from '../../../plugins/memory/words.ts'
import { answerWith } from '../peer.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
process.on('SIGTERM', () => process.exit(0))
const database = open<string, string>({ path: folder, noSubdir: false, overlappingSync: false })
const { Index, MetricKind } = usearch
/** With the defaults of usearch: vectors of 32-bit floats. */
const index = new Index(HASHING_DIMENSIONS, MetricKind.Cos)
let count = 0

function vectorOf(text: string): Float32Array {
	return hashTerms(termsOf(text).terms)
}

async function store({ contents, lanes }: { contents: string[]; lanes: number }): Promise<number> {
	const left = contents.map((content) => ({ content, vector: vectorOf(content) })).values()
	const began = performance.now()
	const lane = async (): Promise<void> => {
		for (const { content, vector } of left) {
			const key = count++
			await database.put(String(key), content)
			index.add(BigInt(key), vector, 1)
		}
	}
	await Promise.all(Array.from({ length: lanes }, lane))
	return performance.now() - began
}

function search({ questions }: { questions: string[] }): number[] {
	const vectors = questions.map(vectorOf)
	return vectors.map((vector) => {
		const began = performance.now()
		index.search(vector, 10, 1)
		return performance.now() - began
	})
}

answerWith({ store, search })
