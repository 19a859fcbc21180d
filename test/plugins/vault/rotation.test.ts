/** Rotation of the master key, interrupted at every point at which that can happen. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { Fault } from '../../../core/errors.ts'
import type { Store } from '../../../core/store/ports.ts'
import { makePlace, open } from './open.ts'
import type { Place } from './open.ts'

/** More than fit into one commit. */
const SECRETS = 101
const file = ({ home }: Place): string => join(home, 'keys', 'vault.key')
const keyIn = (place: Place): string => readFileSync(file(place), 'utf8')

/** `read`: reads every secret once, so that later reads write nothing. */
async function filled(t: Test, read = true): Promise<Place> {
	const place = makePlace(t.testdir({}))
	const { vault } = await open(place)
	await Promise.all(
		Array.from({ length: SECRETS }, (_, n) => vault.secrets.create({ name: `KEY_${n}`, value: `value ${n}` })),
	)
	if (read) await allReadable(t, vault)
	return place
}

/** Asserts that every secret can be read, and that all are encrypted under one key, that of the file. */
async function isConsistent(t: Test, place: Place): Promise<void> {
	const { vault, trouble } = await open(place)
	t.equal(trouble, null)
	await allReadable(t, vault)
	t.notOk(existsSync(`${file(place)}.next`), 'there is one key file')
	const used = new Set<string>()
	for await (const { value } of place.engine.store.list<{ key_id: string }>(['vault', 'secret'])) used.add(value.key_id)
	const state = (await place.engine.store.get<{ key_id: string; own_keys: object }>(['vault', 'state']))?.value
	t.strictSame([...used], [state?.key_id])
	t.strictSame(Object.keys(state?.own_keys ?? {}), [state?.key_id])
}

async function allReadable(t: Test, { open: read }: { open(ref: string): Promise<string> }): Promise<void> {
	const unreadable: number[] = []
	for (let n = 0; n < SECRETS; n++) {
		const value = await read(`KEY_${n}`).catch(String)
		if (value !== `value ${n}`) unreadable.push(n)
	}
	t.strictSame(unreadable, [], 'every secret can be read')
}

/** Fails the n-th write and all later ones. `isDone`: the n-th write is done, and only its acknowledgement fails. */
function failing(store: Store, n: number, isDone: boolean): { store: Store; writes(): number; heal(): void } {
	let count = 0
	let isHealed = false
	const guarded =
		<A extends unknown[], R>(write: (...args: A) => Promise<R>) =>
		async (...args: A): Promise<R> => {
			count++
			if (count === n && isDone) await write(...args)
			if (count >= n && !isHealed) throw new Fault('storage_full', 'no room')
			return write(...args)
		}
	const { put, create, update, commit } = store
	return {
		store: { ...store, put: guarded(put), create: guarded(create), update: guarded(update), commit: guarded(commit) },
		writes: () => count,
		heal: () => void (isHealed = true),
	}
}

void t.test('a new key replaces the old one, which then opens nothing', async (t) => {
	const place = await filled(t)
	const { vault, events } = await open(place)
	await allReadable(t, vault)
	const before = keyIn(place)
	events.length = 0
	t.equal(await vault.rotateKey(), SECRETS)
	t.strictSame(events, [{ event_type: 'vault.key_rotated', payload: { secrets: SECRETS } }])
	const after = keyIn(place)
	t.not(after, before)
	await allReadable(t, vault)
	await vault.secrets.create({ name: 'LATER', value: 'stored under the new key' })
	await isConsistent(t, place)
	t.equal(await vault.rotateKey(), SECRETS + 1, 'and again')
	await isConsistent(t, place)
	writeFileSync(file(place), before)
	t.match((await open(place)).trouble, /a different key/)
})

void t.test('secrets can be stored, changed, read and deleted during a rotation', async (t) => {
	const place = await filled(t, false)
	const { vault } = await open(place)
	const { id } = await vault.secrets.create({ name: 'CHANGING', value: 'version 0' })
	const work = async (): Promise<void> => {
		for (let n = 1; n <= 20; n++) {
			await vault.secrets.replace(id, `version ${n}`)
			const made = await vault.secrets.create({ name: `NEW_${n}`, value: `new ${n}` })
			t.equal(await vault.open(`NEW_${n}`), `new ${n}`)
			if (n % 2 === 0) await vault.secrets.remove(made.id)
		}
	}
	// The first read of a secret also changes its record.
	await Promise.all([work(), allReadable(t, vault), ...Array.from({ length: 4 }, () => vault.rotateKey())])
	await isConsistent(t, place)
	const { vault: again } = await open(place)
	t.equal(await again.open('CHANGING'), 'version 20')
	for (let n = 1; n <= 20; n++) t.equal(await again.has(`NEW_${n}`), n % 2 === 1)
})

void t.test('an interrupted rotation loses nothing, and the next start completes it', async (t) => {
	const trial = await filled(t)
	const counting = failing(trial.engine.store, Infinity, false)
	await (await open(trial, counting)).vault.rotateKey()
	const writes = counting.writes()
	t.ok(writes >= 4, `${writes} writes`)
	for (let n = 1; n <= writes; n++) {
		for (const isDone of [false, true]) {
			await t.test(`write ${n} of ${writes} is ${isDone ? 'done but not acknowledged' : 'not done'}`, async (t) => {
				const place = await filled(t)
				const before = keyIn(place)
				const disk = failing(place.engine.store, n, isDone)
				const { vault } = await open(place, disk)
				await t.rejects(vault.rotateKey(), { code: 'storage_full' })
				t.ok(existsSync(`${file(place)}.next`))
				await allReadable(t, vault)
				if (isDone) {
					disk.heal()
					await vault.rotateKey() // without a restart
					t.equal(await vault.open('KEY_0'), 'value 0')
				} else {
					const { vault: onFullDisk, trouble } = await open(place, failing(place.engine.store, 1, false))
					t.equal(trouble, null)
					await allReadable(t, onFullDisk)
				}
				await isConsistent(t, place)
				t.not(keyIn(place), before)
			})
		}
	}
})

void t.test('a start after a crash between the last write and the renaming of the key file', async (t) => {
	const place = await filled(t)
	const before = keyIn(place)
	await (await open(place)).vault.rotateKey()
	renameSync(file(place), `${file(place)}.next`)
	const after = readFileSync(`${file(place)}.next`, 'utf8')
	await t.test('with the old key file', async (t) => {
		writeFileSync(file(place), before)
		await isConsistent(t, place)
		t.equal(keyIn(place), after)
	})
	await t.test('without the old key file', async (t) => {
		renameSync(file(place), `${file(place)}.next`)
		await isConsistent(t, place)
		t.equal(keyIn(place), after)
	})
})

void t.test('a start after a crash before anything is encrypted under the new key', async (t) => {
	const place = await filled(t)
	const next = randomBytes(32).toString('base64')
	writeFileSync(`${file(place)}.next`, next)
	await isConsistent(t, place)
	t.equal(keyIn(place), next)
})

void t.test('an incomplete new key does not replace a complete one', async (t) => {
	const place = await filled(t)
	const before = keyIn(place)
	writeFileSync(`${file(place)}.next.new`, before.slice(0, 20))
	await isConsistent(t, place)
	t.equal(keyIn(place), before)
	await (await open(place)).vault.rotateKey()
	await isConsistent(t, place)
	copyFileSync(file(place), `${file(place)}.next`)
	await isConsistent(t, place)
	writeFileSync(`${file(place)}.next`, 'half of it')
	t.match((await open(place)).trouble, /vault\.key\.next is not a key/)
})

void t.test('a key file that cannot be replaced loses no secret, not even at the next rotation', async (t) => {
	for (const crashes of [false, true]) {
		const place = await filled(t)
		const { store } = place.engine
		let isBlocked = false
		const commit: Store['commit'] = async (scope, ops) => {
			if (!isBlocked) {
				rmSync(file(place))
				mkdirSync(join(file(place), 'in the way'), { recursive: true })
				isBlocked = true
			}
			return store.commit(scope, ops)
		}
		const { vault } = await open(place, { store: { ...store, commit } })
		await t.rejects(vault.rotateKey(), { code: 'unavailable', message: /vault\.key\.next, cannot replace the old one/ })
		await allReadable(t, vault)
		await t.rejects(vault.rotateKey(), { code: 'unavailable' }, 'the only copy of the key is not overwritten')
		await allReadable(t, vault)
		rmSync(file(place), { recursive: true })
		if (!crashes) await vault.rotateKey()
		await isConsistent(t, place)
	}
})
