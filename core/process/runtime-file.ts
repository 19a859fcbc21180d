/** run/gateway.json: tells other programs on this machine where the gateway listens and which settings are in force. */
import { hash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../errors.ts'
import { replaceFile } from '../util/replace-file.ts'

export interface RuntimeFile {
	pid: number
	/** Of several gateways on one cluster; the waiting ones forward requests. Absent for a single gateway. */
	role?: 'working' | 'waiting'
	/** Null if it does not listen. */
	url: string | null
	legacy_url: string | null
	settings: {
		/** Digest of the gateway.yaml that was read last; null if it could not be read. */
		digest: string | null
		/** Why that text is not in force; null if it is. */
		refused: string | null
		/** The settings in force, without secrets: the file with defaults and the gateway's environment. */
		in_force: Readonly<Record<string, unknown>>
		/** Variables of the gateway's environment that override the file, by setting. */
		variables: Record<string, string>
	}
	/** Plugins with errors at that time, each with its message. */
	trouble: Record<string, string>
}

/** Replaces the file atomically. Throws if it cannot be written. */
export function writeRuntimeFile(home: string, content: RuntimeFile): void {
	const file = runtimeFileOf(home)
	try {
		mkdirSync(join(home, 'run'), { recursive: true, mode: 0o700 })
		replaceFile(file, `${JSON.stringify(content)}\n`)
	} catch (error) {
		throw new Error(`${file} cannot be written: ${messageOf(error)}`, { cause: error })
	}
}

/** A failure does not matter, such as on a disk that became read-only: readers find out that the file's gateway has ended. */
export function removeRuntimeFile(home: string): void {
	try {
		rmSync(runtimeFileOf(home), { force: true })
	} catch {}
}

/** The gateway that wrote it may have been killed since. Undefined if the file does not exist or is not a JSON object. */
export function readRuntimeFile(home: string): Partial<RuntimeFile> | undefined {
	try {
		const content = JSON.parse(readFileSync(runtimeFileOf(home), 'utf8')) as unknown
		return typeof content === 'object' && content !== null ? content : undefined
	} catch {
		return undefined
	}
}

/** Changes with each write of the file; undefined if the file does not exist. */
export function runtimeFileVersion(home: string): string | undefined {
	const info = statSync(runtimeFileOf(home), { throwIfNoEntry: false })
	return info && `${info.ino} ${info.mtimeMs}`
}

/** The path of the runtime file of a home. */
export function runtimeFileOf(home: string): string {
	return join(home, 'run', 'gateway.json')
}

/** Shows whether two texts of gateway.yaml are the same. */
export function digestOf(text: string): string {
	return hash('sha256', text)
}
