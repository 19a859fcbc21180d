/** run/gateway.json: tells other programs of this machine where the gateway listens, and which settings it goes by. */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from './errors.ts'

export interface Announcement {
	pid: number
	/** Null where it does not listen. */
	url: string | null
	legacy_url: string | null
	settings: {
		/** Of the text of gateway.yaml that it read last; null where that could not be read. */
		digest: string | null
		/** Why that is not in force; null where it is. */
		refused: string | null
		/** Variables of its environment that win over the file, by the setting. */
		variables: Record<string, string>
	}
	/** Plugins that were in trouble by then, and why. */
	trouble: Record<string, string>
}

/** Nobody reads half of it. Throws where it cannot be written. */
export function announce(home: string, said: Announcement): void {
	const file = announcementOf(home)
	try {
		mkdirSync(join(home, 'run'), { recursive: true, mode: 0o700 })
		writeFileSync(`${file}.new`, `${JSON.stringify(said)}\n`, { mode: 0o600 })
		renameSync(`${file}.new`, file)
	} catch (error) {
		throw new Error(`${file} cannot be written: ${messageOf(error)}`, { cause: error })
	}
}

export function withdrawAnnouncement(home: string): void {
	rmSync(announcementOf(home), { force: true })
}

/** What the gateway said last, which may be one that was killed since. Undefined where there is nothing, or something else. */
export function readAnnouncement(home: string): Partial<Announcement> | undefined {
	try {
		const said = JSON.parse(readFileSync(announcementOf(home), 'utf8')) as unknown
		return typeof said === 'object' && said !== null ? said : undefined
	} catch {
		return undefined
	}
}

export function announcementOf(home: string): string {
	return join(home, 'run', 'gateway.json')
}

/** By which two texts of gateway.yaml are told apart. */
export function digestOf(text: string): string {
	return createHash('sha256').update(text).digest('hex')
}
