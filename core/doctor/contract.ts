/**
 * What a check of `svc doctor` is, and what it may look at. The doctor changes nothing and starts nothing: with a gateway
 * running it asks its API, otherwise it reads the store. Checks of a feature lie beside it, in `plugins/<name>/doctor.ts`,
 * whose default export is an `Expert`.
 */
import type { Config } from '../../config/types.ts'
import type { Store } from '../store/ports.ts'
import type { StoreVerdict } from './store-process.ts'

/**
 * - `ok`: all is well
 * - `note`: worth knowing, nothing to worry about
 * - `warning`: something will fail, or is less safe than it looks
 * - `error`: something does not work
 */
export type Level = 'ok' | 'note' | 'warning' | 'error'

export interface Finding {
	level: Level
	/** One sentence: what is found. Never a secret. */
	message: string
	/** One sentence: what to do, with a command to copy where there is one. Null where nothing is to be done. */
	fix: string | null
	/** Mends it without touching data; answers with one sentence on what was done. */
	mend?(): Promise<string>
}

export interface Check {
	/** Stable, since scripts name it: `family.word`. */
	id: string
	/** What it looks at: a few words, for `--list`. */
	about: string
	/** What is found; an empty list where there is nothing to look at. Ends within 5 s, or is given up. */
	run(patient: Patient): Promise<Finding | Finding[]>
}

/** What a plugin knows of its own health. */
export interface Expert {
	checks: readonly Check[]
	/** The vault's: how secrets are found. */
	secrets?(patient: Patient): Promise<Secrets>
	/** A platform's, by the `type` of its channels: what is wrong with a bot, as words on its token, and what to do; null where nothing is. */
	bots?: Readonly<Record<string, (bot: Bot, patient: Patient) => Promise<Pick<Finding, 'message' | 'fix'> | null>>>
}

export interface Bot {
	token: string
	/** Of its channel. */
	config: Record<string, unknown>
}

export interface Secrets {
	/** Undefined where there is none of this id or name. `value` is null while a gateway runs: it gives none out. */
	find(ref: string): Promise<{ value: string | null } | undefined>
}

/** Everything that checks share; each part is made once, when it is first asked for. */
export interface Patient {
	readonly home: string
	readonly env: Readonly<NodeJS.ProcessEnv>
	/** The folder of the program itself. */
	readonly root: string
	/** Aborts when the examination is over. */
	readonly signal: AbortSignal
	/** Throws `NotLooked` where gateway.yaml is refused. */
	config(): Promise<Config>
	/** The gateway that runs with this home; null where none does. */
	gateway(): Promise<RunningGateway | null>
	/** What is found in the data file, page by page; also while a gateway runs. Undefined where there is none yet. */
	storeVerdict(): Promise<StoreVerdict | undefined>
	/** For reading, while no gateway runs. Undefined where there is none yet. Throws `NotLooked` where it cannot be read. */
	store(): Promise<Store | undefined>
	/** What plugins know, those that are switched off left out. */
	experts(): Promise<Expert[]>
	/** Throws `NotLooked` where the vault cannot be opened. */
	secrets(): Promise<Secrets>
	/** A short request to a server that the operator named, which may be private: at most 3 s and 4 MiB, no redirects. Throws a Fault that never holds a secret. */
	ask(url: string, request?: Request): Promise<Reply>
	/** What `make` answers, made once for all checks. */
	once<T>(key: string, make: () => Promise<T>): Promise<T>
}

export interface Request {
	method?: 'GET' | 'POST'
	headers?: Record<string, string>
	body?: unknown
	/** Where somebody named the address who may not reach private ones: those that they may, as `host` or `host:port`. */
	private_hosts?: readonly string[]
}

export interface Reply {
	status: number
	/** What its `Date` header says; null where it has none. */
	date: number | null
	/** Parsed where it is JSON, else undefined. */
	body: unknown
}

export interface RunningGateway {
	/** As the lock of the home says. */
	pid: string
	/** Null where it does not say where it listens: it is starting or ending. */
	url: string | null
	/**
	 * Asks the API, with the token of SVC_TOKEN. Throws `NotLooked` where it does not answer, or asks for a token or scope,
	 * and otherwise the Fault that it answers with.
	 */
	get<T>(path: string): Promise<T>
}

/** A check could not look: that is a note, with what to do about it. */
export class NotLooked extends Error {
	readonly fix: string
	constructor(why: string, fix: string) {
		super(why)
		this.fix = fix
	}
}

export function ok(message: string): Finding {
	return { level: 'ok', message, fix: null }
}

export function note(message: string, fix: string, mend?: Finding['mend']): Finding {
	return found('note', message, fix, mend)
}

export function warning(message: string, fix: string, mend?: Finding['mend']): Finding {
	return found('warning', message, fix, mend)
}

export function error(message: string, fix: string, mend?: Finding['mend']): Finding {
	return found('error', message, fix, mend)
}

function found(level: Level, message: string, fix: string, mend: Finding['mend']): Finding {
	return { level, message, fix, ...(mend && { mend }) }
}
