/** Blobs: written in pieces, shared by runs, deleted with the last one, and never left behind. */
import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import type { Test } from 'tap'
import { readBlob, findBlob } from '../../../plugins/attachments/read-blob.ts'
import { collectBlobs, releaseBlobs, useBlobs, USES_PER_COMMIT } from '../../../plugins/attachments/blob-uses.ts'
import { writeBlob } from '../../../plugins/attachments/write-blob.ts'
import { agentScope, expectingAgents, livenessKey } from '../../../core/store/agent-scope.ts'
import type { Store } from '../../../core/store/ports.ts'
import { openMemory } from '../../support/memory-engine.ts'
import { png } from '../../support/files.ts'

const uid = 'uid-1'
const limits = { max_bytes: 4 * 1024 * 1024, max_bytes_per_agent: 8 * 1024 * 1024 }
const later = '9999'

async function openStore(): Promise<Store> {
	const { store } = expectingAgents(openMemory())
	await store.put(livenessKey(uid), {})
	return store
}

async function keysIn(store: Store): Promise<string[]> {
	const found: string[] = []
	for await (const { key } of store.list([agentScope(uid)])) if (key[1] !== 'alive') found.push(key.slice(1).join('/'))
	return found
}

async function use(store: Store, run_id: string, ...blobs: string[]): Promise<void> {
	const { ops } = await useBlobs(
		store,
		uid,
		run_id,
		blobs.map((blob) => ({ blob })),
	)
	await store.commit(agentScope(uid), ops)
}

/** In chunks of a size that fits no piece. */
function* chunks(bytes: Buffer, size = 100_003): Generator<Uint8Array> {
	for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

void t.test('bytes come back as they were, whatever their size', async (t) => {
	const store = await openStore()
	for (const size of [1, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 8 * 256 * 1024, 3_000_000]) {
		const bytes = randomBytes(size)
		const { blob } = await writeBlob(store, uid, chunks(bytes), {}, limits)
		t.equal(blob, `sha256:${createHash('sha256').update(bytes).digest('hex')}`)
		t.ok(Buffer.from((await readBlob(store, uid, blob)) ?? []).equals(bytes), `${size} bytes`)
		t.match(await findBlob(store, uid, blob), { blob, size })
	}
	t.strictSame(
		(await keysIn(store)).filter((key) => key.startsWith('blob-loose')),
		[],
	)
})

void t.test('the same bytes are one blob, and another agent has its own', async (t) => {
	const store = await openStore()
	await store.put(livenessKey('uid-2'), {})
	const bytes = randomBytes(600_000)
	const first = await writeBlob(store, uid, [bytes], {}, limits)
	const keys = await keysIn(store)
	t.strictSame(await writeBlob(store, uid, chunks(bytes), {}, limits), first)
	t.strictSame(await keysIn(store), keys, 'nothing more is stored')
	t.equal(await readBlob(store, 'uid-2', first.blob), undefined)
})

void t.test('limits refuse, and leave nothing behind', async (t) => {
	const store = await openStore()
	const tooMany = async function* (): AsyncGenerator<Uint8Array> {
		for (;;) yield randomBytes(300_000)
	}
	await t.rejects(writeBlob(store, uid, tooMany(), {}, limits), { code: 'payload_too_large', message: /max_mib\)/ })
	await t.rejects(writeBlob(store, uid, [], {}, limits), { code: 'invalid_request' })
	const broken = async function* (): AsyncGenerator<Uint8Array> {
		yield randomBytes(3_000_000)
		throw new Error('the client left')
	}
	await t.rejects(writeBlob(store, uid, broken(), {}, limits), /the client left/)
	t.strictSame(await keysIn(store), [])

	await writeBlob(store, uid, [randomBytes(4_000_000)], {}, limits)
	const { blob } = await writeBlob(store, uid, [randomBytes(4_000_000)], {}, limits)
	const full = { code: 'payload_too_large', message: /max_mib_per_agent/ }
	await t.rejects(writeBlob(store, uid, [randomBytes(3_000_000)], {}, limits), full)
	await use(store, 'r1', blob)
	await releaseBlobs(store, uid, 'r1')
	await writeBlob(store, uid, [randomBytes(3_000_000)], {}, limits)
})

void t.test('a blob lives for as long as one run uses it', async (t) => {
	const store = await openStore()
	const shared = await writeBlob(store, uid, [png('a')], {}, limits)
	const own = await writeBlob(store, uid, [png('b')], {}, limits)
	await use(store, 'r1', shared.blob, own.blob, shared.blob)
	await use(store, 'r1', shared.blob)
	await use(store, 'r2', shared.blob)
	await collectBlobs(store, uid, later)
	await releaseBlobs(store, uid, 'r1')
	t.ok(await readBlob(store, uid, shared.blob))
	t.equal(await readBlob(store, uid, own.blob), undefined)
	await releaseBlobs(store, uid, 'r1')
	t.ok(await readBlob(store, uid, shared.blob), 'a repeated release takes nothing from others')
	await releaseBlobs(store, uid, 'r2')
	t.strictSame(await keysIn(store), ['blob-total'])
	t.match(await store.get([agentScope(uid), 'blob-total']), { value: { bytes: 0 } })
})

void t.test('a run with more blobs than fit into a commit releases them all', async (t) => {
	const store = await openStore()
	for (let at = 0; at < USES_PER_COMMIT * 2 + 3; at++)
		await use(store, 'r1', (await writeBlob(store, uid, [png(String(at))], {}, limits)).blob)
	await releaseBlobs(store, uid, 'r1')
	t.strictSame(await keysIn(store), ['blob-total'])
})

void t.test('what nobody uses is collected, and what was uploaded again meanwhile is not', async (t) => {
	const store = await openStore()
	const { blob } = await writeBlob(store, uid, [png()], {}, limits)
	const record = await store.get<{ at: string }>([agentScope(uid), 'blob', blob.slice('sha256:'.length)])
	await collectBlobs(store, uid, record?.value.at ?? '')
	t.ok(await readBlob(store, uid, blob), 'it is not old enough')
	await collectBlobs(store, uid, later)
	t.strictSame(await keysIn(store), ['blob-total'])
	await writeBlob(store, uid, [png()], {}, limits)
	t.ok(await readBlob(store, uid, blob))
})

/** Stops the store after so many commits, as a kill would. */
function dying(store: Store, commits: number): Store {
	let left = commits
	const commit: Store['commit'] = async (scope, ops) => {
		if (left-- <= 0) throw new Error('killed')
		return store.commit(scope, ops)
	}
	return {
		...store,
		commit,
		put: (key, value) => commit(key[0], [{ key, value }]).then(([rev = '']) => rev),
		delete: (key) => commit(key[0], [{ key, value: undefined }]).then(() => {}),
	}
}

/** Does the work again and again, each time cut off one commit later, until it gets to its end. */
async function cutEverywhere(
	t: Test,
	work: (store: Store) => Promise<unknown>,
	after: () => Promise<void>,
	store: Store,
) {
	for (let commits = 0; ; commits++) {
		t.ok(commits < 50)
		const isDone = await work(dying(store, commits)).then(
			() => true,
			() => false,
		)
		await after()
		if (isDone) return commits
	}
}

void t.test('an upload that is cut off anywhere is complete or gone after collecting', async (t) => {
	const store = await openStore()
	const bytes = randomBytes(4_000_000)
	const commits = await cutEverywhere(
		t,
		(cut) => writeBlob(cut, uid, [bytes], {}, limits),
		async () => {
			await collectBlobs(store, uid, later)
			t.strictSame(
				(await keysIn(store)).filter((key) => key !== 'blob-total'),
				[],
			)
		},
		store,
	)
	t.ok(commits >= 2, `${commits} commits`)
})

void t.test('a release that is cut off anywhere goes on', async (t) => {
	const store = await openStore()
	const blobs = await Promise.all([1, 2, 3].map((n) => writeBlob(store, uid, [randomBytes(n * 700_000)], {}, limits)))
	await use(store, 'r1', ...blobs.map(({ blob }) => blob))
	await cutEverywhere(
		t,
		async (cut) => {
			await releaseBlobs(cut, uid, 'r1')
			await collectBlobs(cut, uid, later)
		},
		async () => {},
		store,
	)
	t.strictSame(await keysIn(store), ['blob-total'])
})

void t.test('an upload that was collected while it went on is refused', async (t) => {
	const store = await openStore()
	const slow = async function* (): AsyncGenerator<Uint8Array> {
		yield randomBytes(3_000_000)
		await collectBlobs(store, uid, later)
		yield randomBytes(10)
	}
	await t.rejects(writeBlob(store, uid, slow(), {}, limits), { code: 'unavailable' })
	await collectBlobs(store, uid, later)
	t.strictSame(await keysIn(store), [])
})
