/** Tokens that `svc login` stored, by the address of their gateway: login.json in the home folder, mode 0600. */
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Fault, messageOf } from '../errors.ts'
import { replaceFile } from '../util/replace-file.ts'
import { quoted } from '../util/quoted.ts'
import { CliError } from './contract.ts'

/** Addresses that have a stored token; beyond this, the oldest are removed. */
const LIMIT = 100

type Logins = Record<string, string>

/** Whether a text can be a token: visible ASCII. With anything else in a header, the error of `fetch` would show the token. */
export function isToken(text: string): boolean {
	return /^[\x21-\x7e]{1,4096}$/.test(text)
}

/**
 * The token for requests to this address: SVC_TOKEN, else the stored one. Throws if the file is damaged or others can read it.
 */
export function tokenFor(env: Readonly<NodeJS.ProcessEnv>, home: string, url: string): string | undefined {
	if (!env.SVC_TOKEN) return read(home)[url]
	const token = env.SVC_TOKEN.trim()
	if (!isToken(token)) throw new CliError('usage', 'SVC_TOKEN does not contain a token; it is one word, such as svc_…')
	return token
}

/** Replaces a token that is already stored for the address. */
export function storeToken(home: string, url: string, token: string): void {
	const { [url]: _, ...others } = read(home)
	write(home, Object.fromEntries([...Object.entries(others), [url, token]].slice(-LIMIT)))
}

/** False if none was stored. */
export function removeToken(home: string, url: string): boolean {
	const { [url]: token, ...others } = read(home)
	if (token === undefined) return false
	if (Object.keys(others).length === 0) rmSync(fileOf(home))
	else write(home, others)
	return true
}

export function fileOf(home: string): string {
	return join(home, 'login.json')
}

function read(home: string): Logins {
	const file = fileOf(home)
	const found = statSync(file, { throwIfNoEntry: false })
	if (!found) return {}
	// Windows has no such modes.
	if (process.platform !== 'win32' && (found.mode & 0o077) !== 0)
		throw new Fault('invalid_request', `others can read ${file}, which contains tokens; run: chmod 600 ${quoted(file)}`)
	try {
		const logins = JSON.parse(readFileSync(file, 'utf8')) as Logins | null
		if (typeof logins === 'object' && logins !== null && Object.values(logins).every((one) => typeof one === 'string'))
			return logins
	} catch (error) {
		throw new Fault('invalid_request', `${file} cannot be read (${messageOf(error)}); remove it, then log in again`, {
			cause: error,
		})
	}
	throw new Fault('invalid_request', `${file} does not contain tokens; remove it, then log in again`)
}

function write(home: string, logins: Logins): void {
	try {
		mkdirSync(home, { recursive: true, mode: 0o700 })
		replaceFile(fileOf(home), `${JSON.stringify(logins, null, '\t')}\n`)
	} catch (error) {
		throw new Fault('invalid_request', `${fileOf(home)} cannot be written: ${messageOf(error)}`, { cause: error })
	}
}
