/** Blobs: stored in pieces, shared by runs, and deleted with the last run that uses them. */
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

/** Chunks whose borders are not those of pieces. */
function* chunks(bytes: Buffer, size = 100_003): Generator<Uint8Array> {
	for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

void t.test('a blob of any size is read as it was written', async (t) => {
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

void t.test('the same bytes are stored once per agent', async (t) => {
	const store = await openStore()
	await store.put(livenessKey('uid-2'), {})
	const bytes = randomBytes(600_000)
	const first = await writeBlob(store, uid, [bytes], {}, limits)
	const keys = await keysIn(store)
	t.strictSame(await writeBlob(store, uid, chunks(bytes), {}, limits), first)
	t.strictSame(await keysIn(store), keys, 'the second write stores nothing')
	t.equal(await readBlob(store, 'uid-2', first.blob), undefined)
})

void t.test('a rejected blob leaves no data', async (t) => {
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

void t.test('a blob is stored as long as a run uses it', async (t) => {
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
	t.ok(await readBlob(store, uid, shared.blob), 'a repeated release does not affect other runs')
	await releaseBlobs(store, uid, 'r2')
	t.strictSame(await keysIn(store), ['blob-total'])
	t.match(await store.get([agentScope(uid), 'blob-total']), { value: { bytes: 0 } })
})

void t.test('all blobs of a run are released, even if there are too many for one commit', async (t) => {
	const store = await openStore()
	for (let at = 0; at < USES_PER_COMMIT * 2 + 3; at++)
		await use(store, 'r1', (await writeBlob(store, uid, [png(String(at))], {}, limits)).blob)
	await releaseBlobs(store, uid, 'r1')
	t.strictSame(await keysIn(store), ['blob-total'])
})

void t.test('unused blobs are collected once they are old enough, and can be written again', async (t) => {
	const store = await openStore()
	const { blob } = await writeBlob(store, uid, [png()], {}, limits)
	const record = await store.get<{ at: string }>([agentScope(uid), 'blob', blob.slice('sha256:'.length)])
	await collectBlobs(store, uid, record?.value.at ?? '')
	t.ok(await readBlob(store, uid, blob), 'a new blob is not collected')
	await collectBlobs(store, uid, later)
	t.strictSame(await keysIn(store), ['blob-total'])
	await writeBlob(store, uid, [png()], {}, limits)
	t.ok(await readBlob(store, uid, blob))
})

/** A store that fails after a number of commits, as if the gateway was killed. */
function failingAfter(store: Store, commits: number): Store {
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

/** Repeats the work with an interruption after 0, 1, 2, … commits, until it completes. */
async function interruptEverywhere(
	t: Test,
	work: (store: Store) => Promise<unknown>,
	after: () => Promise<void>,
	store: Store,
) {
	for (let commits = 0; ; commits++) {
		t.ok(commits < 50)
		const isDone = await work(failingAfter(store, commits)).then(
			() => true,
			() => false,
		)
		await after()
		if (isDone) return commits
	}
}

void t.test('collecting removes an upload that was interrupted after any commit', async (t) => {
	const store = await openStore()
	const bytes = randomBytes(4_000_000)
	const commits = await interruptEverywhere(
		t,
		(interrupted) => writeBlob(interrupted, uid, [bytes], {}, limits),
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

void t.test('an interrupted release can be repeated', async (t) => {
	const store = await openStore()
	const blobs = await Promise.all([1, 2, 3].map((n) => writeBlob(store, uid, [randomBytes(n * 700_000)], {}, limits)))
	await use(store, 'r1', ...blobs.map(({ blob }) => blob))
	await interruptEverywhere(
		t,
		async (interrupted) => {
			await releaseBlobs(interrupted, uid, 'r1')
			await collectBlobs(interrupted, uid, later)
		},
		async () => {},
		store,
	)
	t.strictSame(await keysIn(store), ['blob-total'])
})

void t.test('an upload that is collected while in progress is rejected', async (t) => {
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
