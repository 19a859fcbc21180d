/** The vault's service for other plugins, and the protection of its records against reads and changes from outside. */
import { createSecretKey } from 'node:crypto'
import t from 'tap'
import { Fault } from '../../../core/errors.ts'
import type { Entry, Store } from '../../../core/store/ports.ts'
import { seal, unseal } from '../../../plugins/vault/cipher.ts'
import { eventually } from '../../support/wait.ts'
import { makePlace, open } from './open.ts'

const VALUE = 'correct horse battery staple'

void t.test('a value can be read only with a grant', async (t) => {
	const { vault, agents, as, events } = await open(makePlace(t.testdir({})))
	await agents.create({ name: 'ada' })
	await agents.create({ name: 'bob' })
	const secret = await vault.secrets.create({ name: 'KEY', value: VALUE })
	const ada = await as('ada')
	const denied = { code: 'vault_denied', message: /no grant for a secret "KEY"; .*POST \/v1\/vault\/grants/ }
	await t.rejects(vault.read('KEY', ada), denied)
	const grant = await vault.grants.create({ agent_id: 'ada', secret: 'KEY', reveal: false })
	events.length = 0
	t.strictSame(await vault.read('KEY', ada), { value: VALUE, reveal: false })
	t.strictSame(events, [
		{
			event_type: 'vault.accessed',
			payload: { secret: 'KEY', secret_id: secret.id, grant_id: grant.grant_id, via: 'test' },
		},
	])
	events.length = 0
	await t.rejects(vault.read('KEY', await as('bob')), denied, 'another agent')
	await t.rejects(vault.read(secret.id, ada), { code: 'vault_denied' }, 'an id is not a name')
	const unknown = await vault.read('NONE', ada).catch((error: Error) => error.message)
	const ungranted = await vault.read('KEY', await as('bob')).catch((error: Error) => error.message)
	t.equal(String(unknown).replace('NONE', 'KEY'), ungranted, 'a missing secret gives the same error as a missing grant')
	for (const name of ['', 'a b', '\ud800', 'x'.repeat(5_000), '__proto__', '../secret'])
		await t.rejects(vault.read(name, ada), { code: 'vault_denied' }, name.slice(0, 20))
	t.ok(events.every(({ event_type, payload }) => event_type === 'vault.denied' && String(payload.secret).length <= 128))
	await vault.grants.remove(grant.grant_id)
	await t.rejects(vault.read('KEY', ada), denied)
})

void t.test('a grant belongs to the agent, not to its name', async (t) => {
	const { vault, agents, as } = await open(makePlace(t.testdir({})))
	await agents.create({ name: 'ada' })
	await vault.secrets.create({ name: 'KEY', value: VALUE })
	await vault.grants.create({ agent_id: 'ada', secret: 'KEY', reveal: true })
	const before = await as('ada')
	await agents.remove('ada')
	t.strictSame(await vault.grants.list(), [], 'the grant is not listed any more')
	await agents.create({ name: 'ada' })
	t.strictSame(await vault.grants.list(), [])
	await t.rejects(vault.read('KEY', await as('ada')), { code: 'vault_denied' })
	t.equal((await vault.revealed((await as('ada')).agent)).size, 0)
	await vault.grants.forgetAgent(before.agent.uid)
	await t.rejects(vault.read('KEY', before), { code: 'vault_denied' })
	await vault.grants.create({ agent_id: 'ada', secret: 'KEY', reveal: false })
	t.equal((await vault.read('KEY', await as('ada'))).value, VALUE)
})

void t.test('grants of deleted agents and secrets are removed', async (t) => {
	const place = makePlace(t.testdir({}))
	const { vault, agents } = await open(place)
	for (const name of ['ada', 'bob']) await agents.create({ name })
	const [a, b] = [
		await vault.secrets.create({ name: 'A', value: VALUE }),
		await vault.secrets.create({ name: 'B', value: VALUE }),
	]
	for (const agent_id of ['ada', 'bob'])
		for (const secret of ['A', 'B']) await vault.grants.create({ agent_id, secret, reveal: false })
	await agents.remove('ada')
	// As after a crash between the deletions of a secret and of its grants.
	await place.engine.store.delete(['vault', 'secret', a.id])
	const count = async (part: string): Promise<number> => (await all(place.engine.store, part)).length
	t.strictSame([await count('grant'), await count('grant-id')], [4, 4])
	t.strictSame(
		(await vault.grants.list()).map(({ agent_id, secret_id }) => [agent_id, secret_id]),
		[['bob', b.id]],
	)
	await vault.grants.sweep()
	t.strictSame([await count('grant'), await count('grant-id')], [1, 1])
})

void t.test('deleting a secret deletes all its grants, even if they exceed one commit', async (t) => {
	const place = makePlace(t.testdir({}))
	const { vault, agents, events } = await open(place)
	const { id } = await vault.secrets.create({ name: 'A', value: VALUE })
	await vault.secrets.create({ name: 'B', value: VALUE })
	for (let n = 0; n < 130; n++) {
		await agents.create({ name: `agent-${n}` })
		await vault.grants.create({ agent_id: `agent-${n}`, secret: 'A', reveal: true })
	}
	const kept = await vault.grants.create({ agent_id: 'agent-7', secret: 'B', reveal: true })
	events.length = 0
	await vault.secrets.remove(id)
	t.strictSame(events, [{ event_type: 'vault.secret_deleted', payload: { secret_id: id, name: 'A', grants: 130 } }])
	t.strictSame(await vault.grants.list(), [kept])
	t.equal((await all(place.engine.store, 'grant-id')).length, 1)
	t.equal((await all(place.engine.store, 'value')).length, 1)
})

void t.test('a change of grants applies at once to the values that a model can see', async (t) => {
	const { vault, agents } = await open(makePlace(t.testdir({})))
	const ada = await agents.create({ name: 'ada' })
	const bob = await agents.create({ name: 'bob' })
	const a = await vault.secrets.create({ name: 'A', value: VALUE })
	await vault.secrets.create({ name: 'B', value: VALUE })
	const seen = async (): Promise<string[][]> => [[...(await vault.revealed(ada))], [...(await vault.revealed(bob))]]
	t.strictSame(await seen(), [[], []])
	await vault.grants.create({ agent_id: 'ada', secret: 'B', reveal: false })
	const grant = await vault.grants.create({ agent_id: 'ada', secret: 'A', reveal: true })
	t.strictSame(await seen(), [[a.id], []])
	await vault.grants.remove(grant.grant_id)
	t.strictSame(await seen(), [[], []])
	await vault.grants.create({ agent_id: 'bob', secret: a.id, reveal: true })
	t.strictSame(await seen(), [[], [a.id]])
	await vault.secrets.remove(a.id)
	t.strictSame(await seen(), [[], []])
})

void t.test('a value that an agent has read is redacted after a restart, even if its grant was revoked', async (t) => {
	const place = makePlace(t.testdir({}))
	const first = await open(place)
	for (const name of ['ada', 'bob']) await first.agents.create({ name })
	const { id } = await first.vault.secrets.create({ name: 'KEY', value: VALUE })
	await first.vault.secrets.create({ name: 'UNREAD', value: 'nobody has read this one' })
	const grant = (agent_id: string, secret: string) => first.vault.grants.create({ agent_id, secret, reveal: false })
	const granted = [await grant('ada', 'KEY'), await grant('bob', 'KEY'), await grant('ada', 'UNREAD')]
	await first.vault.read('KEY', await first.as('ada'))
	for (const { grant_id } of granted) await first.vault.grants.remove(grant_id)
	await t.rejects(first.vault.read('KEY', await first.as('ada')), { code: 'vault_denied' })

	const count = async () => (await all(place.engine.store, 'former')).length
	const shown = ({ redactor }: typeof first, agent: string, text = VALUE): string =>
		redactor.of([{ agent }]).text(text, 'event')
	const second = await open(place)
	t.equal(shown(second, 'ada'), '[redacted:KEY]')
	t.equal(shown(second, 'ada', 'nobody has read this one'), 'nobody has read this one')
	t.equal(await count(), 2)
	await second.agents.remove('bob')
	await second.vault.grants.sweep()
	t.equal(await count(), 1, 'the record of a deleted agent is removed')
	await second.vault.secrets.remove(id)
	t.equal(await count(), 0)
})

void t.test('a grant can be revoked while the disk is full', async (t) => {
	const place = makePlace(t.testdir({}))
	const { store } = place.engine
	let isFull = false
	const commit: typeof store.commit = async (scope, ops) => {
		if (isFull && ops.some((op) => 'value' in op && op.value !== undefined)) throw new Fault('storage_full', 'no room')
		return store.commit(scope, ops)
	}
	const { vault, agents, as } = await open(place, { store: { ...store, commit } })
	await agents.create({ name: 'ada' })
	await vault.secrets.create({ name: 'KEY', value: VALUE })
	const { grant_id } = await vault.grants.create({ agent_id: 'ada', secret: 'KEY', reveal: false })
	await vault.read('KEY', await as('ada'))
	isFull = true
	await vault.grants.remove(grant_id)
	await t.rejects(vault.read('KEY', await as('ada')), { code: 'vault_denied' })
})

void t.test('a value is redacted once it was read, also after a restart and in its next version', async (t) => {
	const place = makePlace(t.testdir({}))
	const first = await open(place)
	await first.agents.create({ name: 'ada' })
	const { id } = await first.vault.secrets.create({ name: 'KEY', value: VALUE })
	await first.vault.secrets.create({ name: 'UNREAD', value: 'nobody has read this one' })
	await first.vault.grants.create({ agent_id: 'ada', secret: id, reveal: false })
	const shown = ({ redactor }: typeof first, text = VALUE): string =>
		redactor.of([{ agent: 'ada' }]).text(text, 'event')
	t.equal(shown(first), VALUE, 'not read yet')
	await first.vault.read('KEY', await first.as('ada'))
	t.equal(shown(first), '[redacted:KEY]')

	const second = await open(place)
	t.equal(shown(second), '[redacted:KEY]')
	t.equal(shown(second, 'nobody has read this one'), 'nobody has read this one')
	await second.vault.secrets.replace(id, 'quite another value')
	await second.vault.read('KEY', await second.as('ada'))
	t.equal(shown(second), '[redacted:KEY]', 'the earlier value')
	t.equal(shown(second, 'quite another value'), '[redacted:KEY]')

	const replaced_at = Date.now()
	await second.agents.create({ name: 'bob' })
	await eventually(() => Date.now() > replaced_at)
	await second.vault.grants.create({ agent_id: 'bob', secret: id, reveal: false })

	const third = await open(place)
	t.equal(shown(third, 'quite another value'), '[redacted:KEY]')
	t.equal(shown(third), '[redacted:KEY]', 'the earlier value')
	const byBob = third.redactor.of([{ agent: 'bob' }])
	t.equal(
		byBob.text(`${VALUE}, quite another value`, 'event'),
		`${VALUE}, [redacted:KEY]`,
		'not a value from before its grant',
	)
	for (let at = 1; at <= 9; at++) await third.vault.secrets.replace(id, `value number ${at}`)
	const kept = await open(place)
	const values = [VALUE, 'quite another value', ...Array.from({ length: 9 }, (_, at) => `value number ${at + 1}`)]
	t.strictSame(
		values.filter((value) => shown(kept, value) === value),
		values.slice(0, 3),
		'the 8 newest earlier values are redacted',
	)
	t.equal((await all(place.engine.store, 'earlier')).length, 1)
	await third.vault.secrets.remove(id)
	t.strictSame(await all(place.engine.store, 'earlier'), [], 'a deleted secret leaves nothing')
	t.equal(shown(third, 'quite another value'), '[redacted:KEY]', 'agents that have read it can still repeat it')
	await third.vault.secrets.create({ name: 'AGAIN', value: 'the key of a provider' })
	await third.vault.open('AGAIN')
	t.equal(shown(third, 'the key of a provider'), 'the key of a provider', 'no agent has read it')
	t.equal(third.redactor.of(['gateway']).text('the key of a provider', 'log'), '[redacted:AGAIN]')
	const fourth = await open(place)
	t.equal(shown(fourth, VALUE), VALUE)
	t.equal(fourth.redactor.of(['gateway']).text('the key of a provider', 'log'), '[redacted:AGAIN]')
})

void t.test('a value that is replaced while it is read is redacted after a restart', async (t) => {
	const place = makePlace(t.testdir({}))
	const { store } = place.engine
	let replace: (() => Promise<unknown>) | undefined
	const get: Store['get'] = async (key) => {
		const found = await store.get(key)
		if (key[1] === 'value') {
			const replaceOnce = replace
			replace = undefined
			await replaceOnce?.()
		}
		return found as never
	}
	const { vault, agents, as } = await open(place, { store: { ...store, get } })
	await agents.create({ name: 'ada' })
	const { id } = await vault.secrets.create({ name: 'KEY', value: VALUE })
	await vault.grants.create({ agent_id: 'ada', secret: id, reveal: false })
	replace = () => vault.secrets.replace(id, 'quite another value')
	const { value } = await vault.read('KEY', await as('ada'))
	const { redactor } = await open(place)
	t.equal(redactor.of([{ agent: 'ada' }]).text(value, 'event'), '[redacted:KEY]')
})

void t.test('a start lists the grants once, however many secrets were read', async (t) => {
	const place = makePlace(t.testdir({}))
	const { vault, agents, as } = await open(place)
	await agents.create({ name: 'ada' })
	for (const name of ['ONE', 'TWO', 'THREE']) {
		await vault.secrets.create({ name, value: `the value of ${name}` })
		await vault.grants.create({ agent_id: 'ada', secret: name, reveal: false })
		await vault.read(name, await as('ada'))
	}
	const lists: string[] = []
	const { store } = place.engine
	const counting: Store = Object.assign(Object.create(store) as Store, {
		list: ((prefix, options) => {
			lists.push(prefix.join(' '))
			return store.list(prefix, options)
		}) satisfies Store['list'],
	})
	const { redactor } = await open(place, { store: counting })
	t.equal(redactor.of([{ agent: 'ada' }]).text('the value of THREE', 'event'), '[redacted:THREE]')
	t.equal(lists.filter((prefix) => prefix === 'vault grant').length, 1)
})

void t.test('the record that a secret was read is durable before the value is returned', async (t) => {
	const place = makePlace(t.testdir({}))
	const { vault } = await open(place)
	await vault.secrets.create({ name: 'KEY', value: VALUE })
	const failing = { ...place.engine.store, commit: () => Promise.reject(new Error('the disk is gone')) }
	const { vault: broken } = await open(place, { store: failing })
	await t.rejects(broken.open('KEY'), /the disk is gone/)
	t.equal(await vault.open('KEY'), VALUE)
	t.equal((await open(place, { store: failing })).redactor.of(['gateway']).text(VALUE, 'event'), '[redacted:KEY]')
	t.equal(await broken.open('KEY'), VALUE, 'later reads write nothing')
})

void t.test('the gateway opens secrets by id or name', async (t) => {
	const { vault } = await open(makePlace(t.testdir({})))
	const { id } = await vault.secrets.create({ name: 'KEY', value: VALUE })
	const shadow = await vault.secrets.create({ name: id, value: 'a name like an id' })
	t.equal(await vault.open('KEY'), VALUE)
	t.equal(await vault.open(id), VALUE, 'an id has priority over a name')
	t.equal(await vault.open(shadow.id), 'a name like an id')
	t.equal(await vault.has('KEY'), true)
	t.equal(await vault.has('NONE'), false)
	await t.rejects(vault.open('NONE'), { code: 'not_found', message: /no secret "NONE"/ })
	for (const ref of ['', '\ud800', 'a\0b', 'x'.repeat(2_000)]) {
		t.equal(await vault.has(ref), false)
		await t.rejects(vault.open(ref), { code: 'not_found' })
	}
})

void t.test('readers of a secret that is being replaced get the old or the new value', async (t) => {
	const { vault } = await open(makePlace(t.testdir({})))
	const { id } = await vault.secrets.create({ name: 'KEY', value: 'version 0' })
	const values = Array.from({ length: 40 }, (_, n) => `version ${n + 1}`)
	const readers = Array.from({ length: 4 }, async () => {
		const seen = [0]
		while ((seen.at(-1) ?? 0) < values.length) seen.push(Number((await vault.open('KEY')).split(' ')[1]))
		t.equal(seen.at(-1), values.length)
		t.strictSame(
			seen,
			seen.toSorted((a, b) => a - b),
			'no older value after a newer one',
		)
	})
	for (const value of values) await vault.secrets.replace(id, value)
	await Promise.all(readers)
})

void t.test('listeners get each change of a secret, also those of another instance', async (t) => {
	const place = makePlace(t.testdir({}))
	const { vault } = await open(place)
	const changes: string[] = []
	const stop = vault.onChanged(({ id: changed, name }) => changes.push(`${name} ${changed}`))
	const { id } = await vault.secrets.create({ name: 'KEY', value: VALUE })
	await vault.open(id)
	await vault.rotateKey()
	const { vault: second } = await open(place)
	await second.secrets.replace(id, 'another value')
	await second.secrets.remove(id)
	t.strictSame(changes, [`KEY ${id}`, `KEY ${id}`, `KEY ${id}`])
	stop()
	await vault.secrets.create({ name: 'KEY', value: VALUE })
	t.equal(changes.length, 3)
})

void t.test('sealed text of other plugins opens only for the same purpose', async (t) => {
	const place = makePlace(t.testdir({}))
	const { vault } = await open(place)
	const sealed = await vault.seal('webhook secret', 'webhook:1')
	t.equal(await vault.unseal(sealed, 'webhook:1'), 'webhook secret')
	t.notOk(Buffer.from(sealed).includes('webhook'))
	t.notSame(await vault.seal('webhook secret', 'webhook:1'), sealed, 'the same text is sealed differently each time')
	const refused = { code: 'vault_locked', message: /encrypted by another vault, or was changed/ }
	await t.rejects(vault.unseal(sealed, 'webhook:2'), refused)
	for (let at = 0; at < sealed.length; at++) await t.rejects(vault.unseal(flipped(sealed, at), 'webhook:1'), refused)
	for (const length of [0, 5, 28, sealed.length - 1])
		await t.rejects(vault.unseal(sealed.subarray(0, length), 'webhook:1'), refused)
	await vault.rotateKey()
	t.equal(await vault.unseal(sealed, 'webhook:1'), 'webhook secret')
	t.equal(await (await open(place)).vault.unseal(sealed, 'webhook:1'), 'webhook secret', 'also after a restart')
	const { vault: other } = await open(makePlace(t.testdir({ other: {} })))
	await t.rejects(other.unseal(sealed, 'webhook:1'), refused)
})

void t.test('no part of a secret is in the store in plain text', async (t) => {
	const place = makePlace(t.testdir({}))
	const { vault, agents } = await open(place)
	await agents.create({ name: 'ada' })
	const { id } = await vault.secrets.create({ name: 'THE_NAME_OF_IT', value: VALUE, policy_label: 'channel' })
	await vault.grants.create({ agent_id: 'ada', secret: id, reveal: true })
	await vault.open(id)
	const bytes: Buffer[] = []
	const collect = (value: unknown): void => {
		if (value instanceof Uint8Array) bytes.push(Buffer.from(value))
		else if (typeof value === 'object' && value !== null) Object.entries(value).flat().forEach(collect)
		else bytes.push(Buffer.from(String(value)))
	}
	for (const { key, value } of await all(place.engine.store)) collect([key, value])
	const text = Buffer.concat(bytes)
	for (const word of [VALUE, 'horse', 'THE_NAME', 'channel']) t.notOk(text.includes(word), word)
	t.ok(text.includes(id) && text.includes('ada'), 'the records were searched')
})

void t.test('a change of any field of a record is detected', async (t) => {
	const place = makePlace(t.testdir({}))
	const { vault } = await open(place)
	const { store } = place.engine
	const one = await vault.secrets.create({ name: 'ONE', value: 'the first value' })
	const two = await vault.secrets.create({ name: 'TWO', value: 'the other value' })
	await vault.secrets.replace(two.id, 'the other value again')
	const damaged = { code: 'store_damaged', message: /changed outside the gateway/ }

	const key = ['vault', 'secret', one.id] as const
	const other = (await store.get<Record<string, unknown>>(['vault', 'secret', two.id]))?.value ?? {}
	const record = (await store.get<Record<string, unknown>>(key))?.value ?? {}
	t.strictSame(Object.keys(record).toSorted(), ['about', 'data_key', 'key_id', 'name_hash', 'version'])
	for (const field of Object.keys(record)) {
		const was = record[field]
		const changes = [field === 'key_id' ? 'AAAAAAA' : other[field]]
		if (was instanceof Uint8Array) for (let at = 0; at < was.length; at += 7) changes.push(flipped(was, at))
		for (const changed of changes) {
			await store.put(key, { ...record, [field]: changed })
			await t.rejects(vault.open(one.id), damaged, `${field} by id`)
			const listed = (await vault.secrets.list()).find(({ id }) => id === one.id)
			// The version is authenticated together with the value; a version without a value is detected when it is read.
			t.match(listed, { id: one.id, name: 'unreadable', created_at: one.created_at, damaged: true }, field)
			await t.rejects(vault.secrets.replace(one.id, 'x'), damaged, `${field}: a new value does not hide it`)
		}
	}
	await store.put(key, other)
	await t.rejects(vault.open(one.id), damaged, 'the record of another secret')
	await store.put(key, record)
	t.equal(await vault.open(one.id), 'the first value')

	const valueKey = ['vault', 'value', one.id, '1'] as const
	const value = (await store.get<Uint8Array>(valueKey))?.value ?? new Uint8Array()
	const otherValue = (await store.get(['vault', 'value', two.id, '2']))?.value
	for (const changed of [flipped(value, 0), flipped(value, value.length - 1), value.subarray(1), otherValue]) {
		await store.put(valueKey, changed)
		await t.rejects(vault.open(one.id), damaged)
	}
	await store.delete(valueKey)
	await t.rejects(vault.open(one.id), damaged)
	await store.put(valueKey, value)

	const names = await all(store, 'name')
	const [first, last] = [names[0] as Entry<{ id: string }>, names[1] as Entry<{ id: string }>]
	await store.put(first.key, last.value)
	await store.put(last.key, first.value)
	await t.rejects(vault.open('ONE'), { code: 'not_found' }, 'a name that points to another secret is not found')
	await store.put(first.key, first.value)
	await store.put(last.key, last.value)
	t.equal(await vault.open('ONE'), 'the first value')
})

void t.test('a damaged secret does not affect others, and can be deleted', async (t) => {
	const place = makePlace(t.testdir({}))
	const { vault } = await open(place)
	const { store } = place.engine
	const one = await vault.secrets.create({ name: 'ONE', value: 'the first value' })
	await vault.secrets.create({ name: 'TWO', value: 'the other value' })
	await vault.open('ONE')
	const record = (await store.get<{ data_key: Uint8Array; name_hash: Uint8Array }>(['vault', 'secret', one.id]))?.value
	if (!record) throw new Error('the record is missing')
	const { data_key, name_hash } = record
	await store.put(['vault', 'secret', one.id], {
		...record,
		data_key: flipped(data_key, 20),
		name_hash: flipped(name_hash, 20),
	})
	const again = await open(place)
	t.equal(again.trouble, null)
	t.equal(await again.vault.open('TWO'), 'the other value')
	t.equal(await again.vault.rotateKey(), 1)
	t.equal(await again.vault.open('TWO'), 'the other value')
	await again.vault.secrets.remove(one.id)
	t.strictSame(
		(await again.vault.secrets.list()).map(({ name }) => name),
		['TWO'],
	)
	await again.vault.secrets.create({ name: 'ONE', value: 'stored again' })
	t.equal(await again.vault.open('ONE'), 'stored again')
})

void t.test('a grant that the vault did not make is not valid', async (t) => {
	const place = makePlace(t.testdir({}))
	const { vault, agents, as } = await open(place)
	const { store } = place.engine
	const ada = await agents.create({ name: 'ada' })
	await agents.create({ name: 'bob' })
	const one = await vault.secrets.create({ name: 'ONE', value: VALUE })
	const two = await vault.secrets.create({ name: 'TWO', value: VALUE })
	await vault.grants.create({ agent_id: 'ada', secret: 'ONE', reveal: false })
	const key = ['vault', 'grant', ada.uid, one.id] as const
	const record = (await store.get<Record<string, unknown>>(key))?.value ?? {}
	t.strictSame(Object.keys(record).toSorted(), ['agent_id', 'created_at', 'grant_id', 'mark', 'reveal'])
	const denied = { code: 'vault_denied' }
	for (const [field, changed] of Object.entries({
		agent_id: 'bob',
		created_at: '2020-01-01T00:00:00.000Z',
		grant_id: two.id,
		mark: flipped(record.mark as Uint8Array, 3),
		reveal: true,
		hosts: ['evil.example'],
	})) {
		await store.put(key, { ...record, [field]: changed })
		await t.rejects(vault.read('ONE', await as('ada')), denied, field)
		t.equal((await vault.revealed(ada)).size, 0, field)
		t.equal((await vault.grants.list()).length, 0, field)
	}
	await store.put(key, record)
	t.equal((await vault.read('ONE', await as('ada'))).value, VALUE)
	await vault.grants.create({ agent_id: 'ada', secret: 'TWO', reveal: false, hosts: ['api.example.com'] })
	const bound = ['vault', 'grant', ada.uid, two.id] as const
	const { hosts: _, ...unbound } = (await store.get<Record<string, unknown>>(bound))?.value ?? {}
	await store.put(bound, unbound)
	await t.rejects(vault.read('TWO', await as('ada')), denied, 'its hosts were removed')
	const { agent: bob } = await as('bob')
	await store.put(['vault', 'grant', ada.uid, two.id], record)
	await store.put(['vault', 'grant', bob.uid, one.id], { ...record, agent_id: 'bob' })
	await t.rejects(vault.read('TWO', await as('ada')), denied, 'copied to another secret')
	await t.rejects(vault.read('ONE', await as('bob')), denied, 'copied to another agent')
})

void t.test('the numbers of secrets and grants are limited', async (t) => {
	const place = makePlace(t.testdir({}))
	const stuff = async (part: string, count: number): Promise<void> => {
		for (let n = 0; n < count; n++) await place.engine.store.put(['vault', part, `filler ${n}`], { id: 'none' })
	}
	await stuff('grant-id', 9_999)
	await stuff('name', 9_998)
	const { vault, agents } = await open(place)
	await agents.create({ name: 'ada' })
	const { id } = await vault.secrets.create({ name: 'ONE', value: VALUE })
	await vault.secrets.create({ name: 'TWO', value: VALUE })
	const third = { name: 'MORE', value: VALUE }
	const full = { code: 'conflict', message: /already 10000 secrets, which is the limit; delete some/ }
	await t.rejects(vault.secrets.create(third), full)

	const grant = { agent_id: 'ada', secret: 'TWO', reveal: false }
	const { grant_id } = await vault.grants.create(grant)
	const another = { ...grant, secret: 'ONE' }
	await t.rejects(vault.grants.create(another), {
		code: 'conflict',
		message: /already 10000 grants, which is the limit; revoke some/,
	})
	await vault.grants.remove(grant_id)
	t.equal((await vault.grants.create(another)).secret_id, id)

	await vault.secrets.remove(id)
	t.equal((await vault.secrets.create(third)).name, 'MORE')
	await t.rejects(vault.secrets.create({ name: 'ONE', value: VALUE }), full)
})

void t.test('sealed text opens only with its key and for the same purpose', async (t) => {
	const key = (byte: number) => createSecretKey(Buffer.alloc(32, byte))
	const sealed = seal(key(1), 'text', ['a', 'b'])
	t.equal(unseal(key(1), sealed, ['a', 'b'])?.toString(), 'text')
	t.equal(unseal(key(2), sealed, ['a', 'b']), undefined)
	for (const about of [['ab'], ['a', 'b', ''], ['a,b'], ['b', 'a']] as [string][])
		t.equal(unseal(key(1), sealed, about), undefined, about.join())
	t.equal(unseal(key(1), seal(key(1), '', ['a']), ['a'])?.length, 0, 'empty text can be sealed')
})

async function all(store: Store, ...prefix: string[]): Promise<Entry<{ id: string }>[]> {
	const entries: Entry<{ id: string }>[] = []
	for await (const entry of store.list<{ id: string }>(['vault', ...prefix])) entries.push(entry)
	return entries
}

function flipped(bytes: Uint8Array, at: number): Uint8Array {
	const copy = Uint8Array.from(bytes)
	copy[at] = (copy[at] ?? 0) ^ 1
	return copy
}
