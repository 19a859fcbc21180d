/**
 * The manifest of a backup: the first member of the archive, manifest.json. It lists every other member with its size and
 * digest. The sizes are limits, and a member that is not listed is never accepted.
 */
import Joi from 'joi'
import { Fault, messageOf } from '../errors.ts'
import { idPattern } from './names.ts'
import { isObject } from '../util/is-object.ts'

/** Increased if an older gateway could not restore the backup. */
export const formatVersion = 1
export const manifestName = 'manifest.json'
export const databaseName = 'data/data.mdb'
export const settingsName = 'config/gateway.yaml'

/** Limits for the home's files besides the database: their number, and their total size in bytes. */
export const maxFiles = 50_000
export const maxFileBytes = 4 * 1024 ** 3
export const maxManifestBytes = 32 * 1024 ** 2

export interface Member {
	/** Relative to the home, with slashes. */
	path: string
	bytes: number
	/** In hex. */
	sha256: string
	executable: boolean
}

export interface Manifest {
	format: number
	/** The UTC time of its start, from which its file name is derived. */
	id: string
	created_at: string
	/** On request or by the schedule; retention removes only the latter. */
	trigger: Trigger
	gateway_version: string
	/** Distinguishes homes that share a backup folder. */
	origin: string
	/** The platform it was made on. A backup can be restored on any 64-bit little-endian machine. */
	host: { platform: string; arch: string; node: string }
	store: StoreFacts
	/** Whether it contains a key of the vault. */
	includes_key: boolean
	/** Which parts of the home it does not contain, and why. */
	left_out: string[]
	members: Member[]
}

/** Without the list of members, which can be long. */
export type ManifestHead = Omit<Manifest, 'members'>

export type Trigger = 'request' | 'schedule'

export interface StoreFacts {
	records: number
	/** Records of the log; each holds the events that were written together. */
	log_records: number
	/** The cursor of the newest event. */
	head: string
	/** Runs that were queued or in progress. */
	jobs: number
}

const size = Joi.number().integer().min(0).max(Number.MAX_SAFE_INTEGER).required()
const text = Joi.string().max(1000).required()
const head = {
	format: Joi.valid(formatVersion).required(),
	id: Joi.string().pattern(idPattern).required(),
	created_at: Joi.string().isoDate().required(),
	trigger: Joi.valid('request', 'schedule').required(),
	gateway_version: text,
	origin: text,
	host: Joi.object({ platform: text, arch: text, node: text }).required().unknown(),
	store: Joi.object({ records: size, log_records: size, head: text, jobs: size }).required().unknown(),
	includes_key: Joi.boolean().required(),
	left_out: Joi.array().items(Joi.string().max(5000)).max(maxFiles).required(),
}
const headSchema = Joi.object<ManifestHead>(head).unknown()
const schema = Joi.object<Manifest>({
	...head,
	members: Joi.array()
		.items(
			Joi.object({
				path: Joi.string().max(1024, 'utf8').custom(memberPath).required(),
				bytes: size,
				sha256: Joi.string()
					.pattern(/^[0-9a-f]{64}$/)
					.required(),
				executable: Joi.boolean().required(),
			}).required(),
		)
		.max(maxFiles + 1)
		.unique('path')
		.required(),
}).unknown()

/** Throws `backup_damaged` for an invalid manifest, and `invalid_request` for one of a newer gateway. */
export function parseManifest(bytes: Buffer): Manifest {
	const manifest = conforming(schema, readJson(bytes))
	const { members } = manifest
	if (!members.some(({ path }) => path === databaseName)) throw damaged('it contains no database')
	const others = members.filter(({ path }) => path !== databaseName)
	if (others.reduce((sum, member) => sum + member.bytes, 0) > maxFileBytes)
		throw damaged(`its files are larger than ${maxFileBytes} bytes`)
	return manifest
}

/** The same without the members, whose check would be wasted time for a list of backups. */
export function parseHead(bytes: Buffer): ManifestHead {
	const { members: _, ...rest } = readJson(bytes)
	return conforming(headSchema, rest)
}

function readJson(bytes: Buffer): Partial<Manifest> {
	let found: unknown
	try {
		found = JSON.parse(bytes.toString('utf8'))
	} catch (error) {
		throw damaged(`its manifest is not JSON: ${messageOf(error)}`)
	}
	if (!isObject(found)) throw damaged('its manifest is invalid')
	const { format, gateway_version } = found
	if (typeof format === 'number' && format > formatVersion) {
		throw new Fault(
			'invalid_request',
			`this backup has format ${format} and was made by version ${String(gateway_version).slice(0, 100)}; this version reads formats up to ${formatVersion}: use that version, or a newer one`,
		)
	}
	return found
}

function conforming<T>(wanted: Joi.ObjectSchema<T>, found: unknown): T {
	const { error, value } = wanted.validate(found, { convert: false })
	if (error) throw damaged(`its manifest is invalid: ${error.message}`)
	return value
}

/** Accepts only paths that a backup consists of, never one that leads out of the home. */
function memberPath(path: string, helpers: Joi.CustomHelpers): string | Joi.ErrorReport {
	return isMemberPath(path) ? path : helpers.message({ custom: '{#label} is not a file that belongs in a home' })
}

/** Whether a backup may contain a file at this path, which is relative to the home. */
export function isMemberPath(path: string): boolean {
	if (path === databaseName || path === settingsName) return true
	const parts = path.split('/')
	const known = parts.length > 1 && ['plugins', 'skills', 'keys'].includes(parts[0] ?? '')
	// oxlint-disable-next-line no-control-regex -- matches control characters on purpose
	return known && parts.every((part) => part !== '' && part !== '.' && part !== '..' && !/[\\\u0000-\u001f]/.test(part))
}

/** The error for a file that is not a complete backup. `why` follows a colon and ends without a period. */
export function damaged(why: string): Fault {
	return new Fault(
		'backup_damaged',
		`the file is a damaged backup, or not a backup: ${why}. Nothing was changed; use another one`,
	)
}
