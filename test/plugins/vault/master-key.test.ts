/** Where the vault's key comes from, and what happens without the right one. */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { Test } from 'tap'
import { makePlace, open } from './open.ts'
import type { Opened, Place } from './open.ts'

const VALUE = 'correct horse battery staple'
const keyFile = ({ home }: Place): string => join(home, 'keys', 'vault.key')

async function filled(t: Test, env: NodeJS.ProcessEnv = {}): Promise<Place> {
	const place = makePlace(t.testdir({}))
	const { vault, agents } = await open(place, { env })
	await agents.create({ name: 'ada' })
	await vault.secrets.create({ name: 'KEY', value: VALUE })
	await vault.grants.create({ agent_id: 'ada', secret: 'KEY', reveal: true })
	return place
}

async function isLocked(t: Test, { vault, agents, as, trouble }: Opened, message: RegExp): Promise<void> {
	const locked = { code: 'vault_locked', message }
	t.match(trouble, message)
	const ada = await as('ada')
	await t.rejects(vault.read('KEY', ada), locked)
	await t.rejects(vault.fill({ a: '{{secret:KEY}}' }, ada), locked)
	await t.rejects(vault.open('KEY'), locked)
	await t.rejects(vault.has('KEY'), locked)
	await t.rejects(vault.seal('text', 'x'), locked)
	await t.rejects(vault.unseal(new Uint8Array(50), 'x'), locked)
	await t.rejects(vault.rotateKey(), locked)
	await t.rejects(vault.secrets.create({ name: 'MORE', value: VALUE }), locked)
	await t.rejects(vault.secrets.list(), locked)
	await t.rejects(vault.grants.create({ agent_id: 'ada', secret: 'KEY', reveal: false }), locked)
	t.equal((await vault.revealed(await agents.get('ada'))).size, 0, 'runs continue')
	t.equal(await vault.fill('no handle', ada), 'no handle')
}

async function isOpen(t: Test, place: Place, env: NodeJS.ProcessEnv = {}): Promise<void> {
	const { vault, trouble, as } = await open(place, { env })
	t.equal(trouble, null)
	t.strictSame(await vault.read('KEY', await as('ada')), { value: VALUE, reveal: true })
}

void t.test('the first start makes a key file that only its owner can read, and later starts use it', async (t) => {
	const place = await filled(t)
	t.strictSame(readdirSync(join(place.home, 'keys')), ['vault.key'])
	const text = readFileSync(keyFile(place), 'utf8')
	t.match(text, /^[A-Za-z0-9+/]{43}=\n$/)
	if (process.platform !== 'win32') t.equal(statSync(keyFile(place)).mode & 0o777, 0o600)
	await isOpen(t, place)
	t.equal(readFileSync(keyFile(place), 'utf8'), text)
})

void t.test('a key can be hex, base64 or base64url', async (t) => {
	const key = Buffer.from('fbef'.repeat(16), 'hex')
	const place = await filled(t, { SVC_VAULT_KEY: key.toString('hex') })
	t.strictSame(readdirSync(join(place.home, 'keys')), [], 'no file is made')
	for (const text of [
		key.toString('hex').toUpperCase(),
		key.toString('base64'),
		key.toString('base64').replace('=', ''),
		key.toString('base64url'),
		`  ${key.toString('base64')}\n`,
	])
		await isOpen(t, place, { SVC_VAULT_KEY: text })
})

void t.test('an invalid key locks the vault; the error shows what is valid, but not the key', async (t) => {
	for (const text of [
		'hunter2',
		'0'.repeat(63),
		`${'0'.repeat(63)}g`,
		'A'.repeat(42),
		'A'.repeat(44),
		randomBytes(16).toString('hex'),
		randomBytes(33).toString('base64'),
	]) {
		const place = makePlace(t.testdir({}))
		const { trouble } = await open(place, { env: { SVC_VAULT_KEY: text } })
		t.match(trouble, /SVC_VAULT_KEY is not a key; it must be 32 bytes as base64, base64url or hex; `openssl rand/, text)
		t.notOk(trouble?.includes(text), text)
		t.strictSame(readdirSync(join(place.home, 'keys')), [])
	}
	const place = makePlace(t.testdir({}))
	writeFileSync(keyFile(place), 'hunter2')
	const { trouble } = await open(place)
	t.match(trouble, /vault\.key is not a key/)
	t.equal(readFileSync(keyFile(place), 'utf8'), 'hunter2', "the operator's file is unchanged")
})

void t.test('an empty variable counts as absent', async (t) => {
	const place = await filled(t, { SVC_VAULT_KEY: '', SVC_VAULT_KEY_OLD: '', CREDENTIALS_DIRECTORY: '' })
	t.ok(existsSync(keyFile(place)))
	await isOpen(t, place)
})

void t.test('with a wrong key the vault is locked, and with the right one it opens again', async (t) => {
	const place = await filled(t)
	const another = { SVC_VAULT_KEY: randomBytes(32).toString('base64') }
	await isLocked(
		t,
		await open(place, { env: another }),
		/a different key than that in SVC_VAULT_KEY; .*SVC_VAULT_KEY_OLD.*if the vault's key is lost, .*svc vault reset/,
	)
	await isOpen(t, place)

	const text = readFileSync(keyFile(place), 'utf8')
	writeFileSync(keyFile(place), randomBytes(32).toString('base64'))
	await isLocked(t, await open(place), /a different key than that in .*vault\.key.*svc vault reset/)
	rmSync(keyFile(place))
	await isLocked(
		t,
		await open(place),
		/the key of the vault is missing: there is no .*vault\.key.*if the vault's key is lost, .*svc vault reset/,
	)
	t.notOk(existsSync(keyFile(place)), 'no new key is made for an existing vault')
	mkdirSync(keyFile(place))
	await isLocked(t, await open(place), /cannot be read: EISDIR/)
	rmSync(keyFile(place), { recursive: true })
	writeFileSync(keyFile(place), text)
	await isOpen(t, place)
})

void t.test('damage and a wrong key give different errors', async (t) => {
	const place = await filled(t)
	const { store } = place.engine
	const state = (await store.get<{ own_keys: Record<string, { index: Uint8Array }> }>(['vault', 'state']))?.value
	const own = Object.values(state?.own_keys ?? {})[0]
	if (!own) throw new Error('the vault has no state')
	own.index[20] = (own.index[20] ?? 0) ^ 1
	await store.put(['vault', 'state'], state)
	await isLocked(
		t,
		await open(place),
		/contains the key of this vault, but .* damaged; restore a backup.*svc vault reset/,
	)
})

void t.test('a systemd credential has priority over the file, the variable over both', async (t) => {
	const folder = t.testdir({ 'svc-vault-key': `${randomBytes(32).toString('base64')}\n`, other: {} })
	const credential = { CREDENTIALS_DIRECTORY: folder }
	const variable = { SVC_VAULT_KEY: randomBytes(32).toString('hex') }

	const place = makePlace(join(folder, 'other'))
	const { vault } = await open(place, { env: credential })
	await vault.secrets.create({ name: 'KEY', value: VALUE })
	t.strictSame(readdirSync(join(place.home, 'keys')), [])
	writeFileSync(keyFile(place), randomBytes(32).toString('base64'))
	t.equal(await (await open(place, { env: credential })).vault.open('KEY'), VALUE, 'the file is ignored')
	t.match((await open(place)).trouble, /a different key than that in .*vault\.key.*svc vault reset/)
	t.match(
		(await open(place, { env: { ...credential, ...variable } })).trouble,
		/a different key than that in SVC_VAULT_KEY/,
	)

	const { vault: reopened } = await open(place, { env: credential })
	await t.rejects(reopened.rotateKey(), { code: 'conflict', message: /the credential svc-vault-key/ })
	writeFileSync(join(folder, 'svc-vault-key-old'), readFileSync(join(folder, 'svc-vault-key')))
	writeFileSync(join(folder, 'svc-vault-key'), randomBytes(32).toString('hex'))
	t.equal(await (await open(place, { env: credential })).vault.open('KEY'), VALUE)
	rmSync(join(folder, 'svc-vault-key-old'))
	t.equal(await (await open(place, { env: credential })).vault.open('KEY'), VALUE)
	rmSync(join(folder, 'svc-vault-key'))
	t.match(
		(await open(place, { env: credential })).trouble,
		/a different key than that in .*vault\.key.*svc vault reset/,
	)
})

void t.test('the operator changes the key in the environment by setting the earlier one as well', async (t) => {
	const [one, two, three] = [1, 2, 3].map(() => randomBytes(32).toString('base64')) as [string, string, string]
	const place = await filled(t, { SVC_VAULT_KEY: one })
	const { vault } = await open(place, { env: { SVC_VAULT_KEY: one } })
	await t.rejects(vault.rotateKey(), {
		code: 'conflict',
		message: /comes from SVC_VAULT_KEY.*set SVC_VAULT_KEY to a new key and SVC_VAULT_KEY_OLD to the current one/,
	})
	await isOpen(t, place, { SVC_VAULT_KEY: two, SVC_VAULT_KEY_OLD: one })
	await isOpen(t, place, { SVC_VAULT_KEY: two })
	t.match(
		(await open(place, { env: { SVC_VAULT_KEY: one } })).trouble,
		/a different key/,
		'the earlier key no longer opens the vault',
	)
	await isOpen(t, place, { SVC_VAULT_KEY: two, SVC_VAULT_KEY_OLD: one })
	await isOpen(t, place, { SVC_VAULT_KEY: three, SVC_VAULT_KEY_OLD: two })
	const wrong = { SVC_VAULT_KEY: one, SVC_VAULT_KEY_OLD: two }
	t.match((await open(place, { env: wrong })).trouble, /a different key/)
	t.match(
		(await open(place, { env: { SVC_VAULT_KEY: three, SVC_VAULT_KEY_OLD: 'none' } })).trouble,
		/the earlier key beside SVC_VAULT_KEY is not a key/,
	)
})

void t.test('the key can move from the file to the environment', async (t) => {
	const place = await filled(t)
	const SVC_VAULT_KEY = randomBytes(32).toString('base64')
	await isOpen(t, place, { SVC_VAULT_KEY, SVC_VAULT_KEY_OLD: readFileSync(keyFile(place), 'utf8') })
	await isOpen(t, place, { SVC_VAULT_KEY })
	t.match((await open(place)).trouble, /a different key than that in .*vault\.key.*svc vault reset/)
})
