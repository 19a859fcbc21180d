/**
 * The source of the master key: the environment variable SVC_VAULT_KEY, else the systemd credential svc-vault-key,
 * else keys/vault.key in the home, which the first start creates.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import type { KeyObject } from 'node:crypto'
import { dirname, join } from 'node:path'
import { Fault, messageOf } from '../../core/errors.ts'
import { replaceFile } from '../../core/util/replace-file.ts'
import { keyOf, mac, newKey } from './cipher.ts'

export interface MasterKey {
	/** Identifies the key without revealing it. Stored in each record that is encrypted with the key. */
	id: string
	key: KeyObject
}

export interface KeySource {
	/** For people: where the key is, such as `SVC_VAULT_KEY`. */
	name: string
	/** The desired key, with which everything should be encrypted. */
	wanted: MasterKey
	/** The previous key, while records may still be encrypted with it. */
	earlier: MasterKey | undefined
	/** Call this when nothing is encrypted with the earlier key any more: the desired key replaces it. */
	settle(): void
	/** Creates a new desired key, and stores it durably. Throws `conflict` if only the operator can change the key. */
	renew(): KeySource
}

interface KeySourceOptions {
	home: string
	env: Readonly<NodeJS.ProcessEnv>
	/** Nothing is encrypted yet, so a missing key may be created. */
	isNew: boolean
}

/** Characters: 42 bits, and too short for the redactor to find a secret in it. */
const ID_LENGTH = 7
const VARIABLE = 'SVC_VAULT_KEY'
const CREDENTIAL = 'svc-vault-key'
const FILE = 'keys/vault.key'
export const ifLost =
	"if the vault's key is lost, svc vault reset deletes all secrets and grants and makes the vault usable again"
const FORM = '32 bytes as base64, base64url or hex; `openssl rand -base64 32` creates one'

/**
 * Throws `vault_locked`, with the remedy, if the key is missing or invalid, and
 * `unavailable` if a new one cannot be written.
 */
export function masterKeyFrom({ home, env, isNew }: KeySourceOptions): KeySource {
	const credentials = env.CREDENTIALS_DIRECTORY
	return (
		fromOperator(VARIABLE, (suffix) => env[VARIABLE + suffix]) ??
		fromOperator(`the credential ${CREDENTIAL}`, (suffix) =>
			credentials ? readText(join(credentials, CREDENTIAL + suffix.replace('_OLD', '-old'))) : undefined,
		) ??
		fromFile(join(home, FILE), isNew)
	)
}

/** `read('_OLD')` returns the earlier key. An empty text counts as missing, since compose files set empty variables. */
function fromOperator(name: string, read: (suffix: '' | '_OLD') => string | undefined): KeySource | undefined {
	const text = read('')
	if (!text) return undefined
	const old = read('_OLD')
	return {
		name,
		wanted: parse(text, name),
		earlier: old ? parse(old, `the earlier key beside ${name}`) : undefined,
		settle: () => {},
		renew() {
			throw new Fault(
				'conflict',
				`the key of the vault comes from ${name}, so change it there: set ${VARIABLE} to a new key and ${VARIABLE}_OLD to the current one (as credentials: ${CREDENTIAL} and ${CREDENTIAL}-old), and start the gateway again`,
			)
		},
	}
}

/** While the key is changed, the next key is in a file beside it. */
function fromFile(file: string, isNew: boolean): KeySource {
	const next = `${file}.next`
	const text = readText(file)
	const nextText = readText(next)
	if (text === undefined && nextText === undefined) {
		if (!isNew) {
			throw new Fault(
				'vault_locked',
				`the key of the vault is missing: there is no ${file}, and ${VARIABLE} is not set; restore the key and start the gateway again; ${ifLost}`,
			)
		}
		writeKey(file)
		return fromFile(file, false)
	}
	const [wanted, earlier] = [
		...(nextText === undefined ? [] : [parse(nextText, next)]),
		...(text === undefined ? [] : [parse(text, file)]),
	] as [MasterKey, MasterKey?]
	let isSettled = nextText === undefined
	const settle = (): void => {
		if (isSettled) return
		try {
			if (existsSync(next)) {
				renameSync(next, file)
				syncFolder(file)
			}
			isSettled = true
		} catch (error) {
			const message = `the new key of the vault, ${next}, cannot replace the old one: ${messageOf(error)}`
			throw new Fault('unavailable', message, { cause: error })
		}
	}
	return {
		name: file,
		wanted,
		earlier,
		settle,
		renew() {
			settle() // otherwise the next line would overwrite the only copy of the current key
			writeKey(next)
			return fromFile(file, false)
		},
	}
}

function parse(text: string, name: string): MasterKey {
	const trimmed = text.trim()
	const bytes = /^[0-9a-f]{64}$/i.test(trimmed)
		? Buffer.from(trimmed, 'hex')
		: /^[A-Za-z0-9+/_-]{43}=?$/.test(trimmed)
			? Buffer.from(trimmed, 'base64')
			: undefined
	if (!bytes) throw new Fault('vault_locked', `${name} is not a key; it must be ${FORM}`)
	const key = keyOf(bytes)
	return { id: mac(key, ['id of a master key']).toString('base64url').slice(0, ID_LENGTH), key }
}

function readText(file: string): string | undefined {
	try {
		// Reading a named pipe could wait forever.
		if (statSync(file).isFIFO()) throw new Error(`${file} is a pipe, not a file`)
		return readFileSync(file, 'utf8')
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
		throw new Fault('vault_locked', `the key of the vault cannot be read: ${messageOf(error)}`, { cause: error })
	}
}

/** Writes a new key atomically and durably. There is no concurrent writer, since the home is locked. */
function writeKey(file: string): void {
	try {
		replaceFile(file, `${newKey().export().toString('base64')}\n`, { flush: true })
		syncFolder(file)
	} catch (error) {
		throw new Fault('unavailable', `the key of the vault cannot be written: ${messageOf(error)}`, { cause: error })
	}
}

/** Makes the new name of a file durable. */
function syncFolder(file: string): void {
	if (process.platform === 'win32') return // folders cannot be synced there
	const folder = openSync(dirname(file), 'r')
	try {
		fsyncSync(folder)
	} finally {
		closeSync(folder)
	}
}
