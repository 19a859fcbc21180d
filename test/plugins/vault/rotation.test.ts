/** The master key is changed, and breaks off at every point at which that can happen. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { Fault } from '../../../core/errors.ts'
import type { Store } from '../../../core/store/ports.ts'
import { makePlace, open } from './open.ts'
import type { Place } from './open.ts'

/** More than one commit takes. */
const SECRETS = 101
const file = ({ home }: Place): string => join(home, 'keys', 'vault.key')
const keyIn = (place: Place): string => readFileSync(file(place), 'utf8')

/** `read`: so that reading them again writes nothing. */
async function filled(t: Test, read = true): Promise<Place> {
	const place = makePlace(t.testdir({}))
	const { vault } = await open(place)
	await Promise.all(
		Array.from({ length: SECRETS }, (_, n) => vault.secrets.create({ name: `KEY_${n}`, value: `value ${n}` })),
	)
	if (read) await allReadable(t, vault)
	return place
}

/** Every secret can be read, all are wrapped under one and the same key, and that is the one of the file. */
async function isWhole(t: Test, place: Place): Promise<void> {
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
	const wrong: number[] = []
	for (let n = 0; n < SECRETS; n++) {
		const value = await read(`KEY_${n}`).catch(String)
		if (value !== `value ${n}`) wrong.push(n)
	}
	t.strictSame(wrong, [], 'every secret can be read')
}

/** Fails the n-th write and all that follow: before it is done, or when only its acknowledgement is missing. */
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

void t.test('a new key takes the place of the old one, which then opens nothing', async (t) => {
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
	await isWhole(t, place)
	t.equal(await vault.rotateKey(), SECRETS + 1, 'and again')
	await isWhole(t, place)
	writeFileSync(file(place), before)
	t.match((await open(place)).trouble, /a different key/)
})

void t.test('secrets are stored, changed, read and deleted meanwhile', async (t) => {
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
	// The first read of a secret changes its record in the midst of all that.
	await Promise.all([work(), allReadable(t, vault), ...Array.from({ length: 4 }, () => vault.rotateKey())])
	await isWhole(t, place)
	const { vault: again } = await open(place)
	t.equal(await again.open('CHANGING'), 'version 20')
	for (let n = 1; n <= 20; n++) t.equal(await again.has(`NEW_${n}`), n % 2 === 1)
})

void t.test('wherever it breaks off, nothing is lost and the next start brings it to its end', async (t) => {
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
				await isWhole(t, place)
				t.not(keyIn(place), before)
			})
		}
	}
})

void t.test('a crash between the last write and the new name of the key file', async (t) => {
	const place = await filled(t)
	const before = keyIn(place)
	await (await open(place)).vault.rotateKey()
	renameSync(file(place), `${file(place)}.next`)
	const after = readFileSync(`${file(place)}.next`, 'utf8')
	await t.test('with the old one still there', async (t) => {
		writeFileSync(file(place), before)
		await isWhole(t, place)
		t.equal(keyIn(place), after)
	})
	await t.test('with the old one lost', async (t) => {
		renameSync(file(place), `${file(place)}.next`)
		await isWhole(t, place)
		t.equal(keyIn(place), after)
	})
})

void t.test('a crash before anything is wrapped under the new key', async (t) => {
	const place = await filled(t)
	const next = randomBytes(32).toString('base64')
	writeFileSync(`${file(place)}.next`, next)
	await isWhole(t, place)
	t.equal(keyIn(place), next)
})

void t.test('half a new key does not take the place of a whole one', async (t) => {
	const place = await filled(t)
	const before = keyIn(place)
	writeFileSync(`${file(place)}.next.new`, before.slice(0, 20))
	await isWhole(t, place)
	t.equal(keyIn(place), before)
	await (await open(place)).vault.rotateKey()
	await isWhole(t, place)
	copyFileSync(file(place), `${file(place)}.next`)
	await isWhole(t, place)
	writeFileSync(`${file(place)}.next`, 'half of it')
	t.match((await open(place)).trouble, /vault\.key\.next is not a key/)
})

void t.test('a key file that cannot be replaced costs nothing, neither then nor with the next change', async (t) => {
	for (const crashes of [false, true]) {
		const place = await filled(t)
		const { store } = place.engine
		let isInTheWay = false
		const commit: Store['commit'] = async (scope, ops) => {
			if (!isInTheWay) {
				rmSync(file(place))
				mkdirSync(join(file(place), 'in the way'), { recursive: true })
				isInTheWay = true
			}
			return store.commit(scope, ops)
		}
		const { vault } = await open(place, { store: { ...store, commit } })
		await t.rejects(vault.rotateKey(), { code: 'unavailable', message: /vault\.key\.next, cannot replace the old one/ })
		await allReadable(t, vault)
		await t.rejects(vault.rotateKey(), { code: 'unavailable' }, 'the only copy of the key is not written over')
		await allReadable(t, vault)
		rmSync(file(place), { recursive: true })
		if (!crashes) await vault.rotateKey()
		await isWhole(t, place)
	}
})
