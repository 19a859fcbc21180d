/**
 * What a check of `svc doctor` is, and what it may look at. The doctor changes nothing and starts nothing: with a gateway
 * running it asks its API, otherwise it reads the store. Checks of a feature lie beside it, in `plugins/<name>/doctor.ts`,
 * whose default export is a `DoctorFile`; third parties' plugins have theirs in the same way.
 */
import type { LateProblem } from '../../../config/read.ts'
import type { Config } from '../../../config/types.ts'
import type { Store } from '../../store/ports.ts'
import type { DoctorLimits } from './limits.ts'
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
	/** One sentence: what to do, with a command to copy where there is one. Null if nothing is to be done. */
	fix: string | null
	/** Fixes it without touching data; returns one sentence on what was done. */
	repair?(): Promise<string>
}

export interface Check {
	/** Stable, since scripts name it: `family.word`. */
	id: string
	/** What it looks at: a few words, for `--list`. */
	about: string
	/** What is found; an empty list where there is nothing to look at. Must end within 15 s. */
	run(context: CheckContext): Promise<Finding | Finding[]>
}

/**
 * What a plugin knows of its own health: the default export of its `doctor.ts`. A third-party plugin's file is loaded in a process of
 * its own, where only `checks` counts; the ids of its checks begin with its name, and it needs no import: a finding is plain data.
 * Plugins add further members, which they read from each other, by declaration merging.
 */
export interface DoctorFile {
	checks?: readonly Check[]
	/** How stored secrets are found. */
	secrets?(context: CheckContext): Promise<Secrets>
	/** Environment variables that its plugin reads, with whether the value is a secret. */
	variables?: Readonly<Record<string, 'secret' | 'plain'>>
	/** Secrets in the settings themselves, by what to call them. */
	secretsIn?(config: Config): Readonly<Record<string, string>>
	/** Ports that its plugin has the gateway listen at, beside the main one. */
	ports?(config: Config): readonly { setting: string; port: number }[]
	/** Packages with a compiled part that its plugin needs, each with what for. */
	packages?: Readonly<Record<string, string>>
	/** For `svc config validate`: what is wrong with valid settings in the place where they would be used. */
	place?: readonly PlaceCheck[]
}

export interface PlaceCheck {
	/** What it checks: a few words, for where it cannot. */
	about: string
	/** `config`: the one to check, which need not be that of `context`. Throws `NotChecked` if it cannot check. */
	run(config: Config, context: CheckContext): Promise<PlaceProblem[]>
}

export interface PlaceProblem extends LateProblem {
	/** The gateway would refuse the configuration. */
	isRefused?: boolean
}

export interface Secrets {
	/** Undefined if there is none of this id or name. `value` is null while a gateway runs: it gives none out. */
	find(ref: string): Promise<{ value: string | null } | undefined>
}

/** Everything that checks share; each part is made once, when it is first asked for. */
export interface CheckContext {
	readonly home: string
	readonly env: Readonly<NodeJS.ProcessEnv>
	/** The folder of the program itself. */
	readonly root: string
	/** How long things may take. */
	readonly limits: DoctorLimits
	/** Aborts when the examination is over. */
	readonly signal: AbortSignal
	/** Throws `NotChecked` if gateway.yaml is refused. */
	config(): Promise<Config>
	/** The gateway that runs with this home; null if none does. */
	gateway(): Promise<RunningGateway | null>
	/** What is found in the data file, page by page; also while a gateway runs. Undefined if there is none yet. */
	storeVerdict(): Promise<StoreVerdict | undefined>
	/** For reading, while no gateway runs. Undefined if there is none yet. Throws `NotChecked` if it cannot be read. */
	store(): Promise<Store | undefined>
	/** What plugins know, those that are switched off left out. */
	doctorFiles(): Promise<DoctorFile[]>
	/** @deprecated The former name of `doctorFiles`. */
	experts(): Promise<DoctorFile[]>
	/** Throws `NotChecked` if they cannot be opened. */
	secrets(): Promise<Secrets>
	/**
	 * A short request to a server that the operator named, which may be private: at most 10 s and 4 MiB, no redirects.
	 * Throws a Fault that never holds a secret.
	 */
	ask(url: string, request?: Request): Promise<Reply>
	/** What `make` answers, made once for all checks. */
	once<T>(key: string, make: () => Promise<T>): Promise<T>
}

export interface Request {
	method?: 'GET' | 'POST'
	headers?: Record<string, string>
	body?: unknown
	/** If the address was named by a caller that may not reach private ones: those that it may, as `host` or `host:port`. */
	private_hosts?: readonly string[]
}

export interface Reply {
	status: number
	/** What its `Date` header says; null if it has none. */
	date: number | null
	/** Parsed where it is JSON, else undefined. */
	body: unknown
}

export interface RunningGateway {
	/** As the lock of the home says. */
	pid: string
	/** Null if it does not say where it listens: it is starting or ending. */
	url: string | null
	/**
	 * Asks the API, with the token of SVC_TOKEN or svc login. Throws `NotChecked` if it does not answer, or requires a token or scope,
	 * and otherwise the Fault that it answers with.
	 */
	get<T>(path: string): Promise<T>
	/** The same for a request that changes nothing and needs a body. */
	post<T>(path: string, body: object): Promise<T>
}

/** A check could not be made: that is a note, with what to do about it. */
export class NotChecked extends Error {
	readonly fix: string
	constructor(why: string, fix: string) {
		super(why)
		this.fix = fix
	}
}

export function ok(message: string): Finding {
	return { level: 'ok', message, fix: null }
}

export const note = findingOf('note')
export const warning = findingOf('warning')
export const error = findingOf('error')

function findingOf(level: Level): (message: string, fix: string, repair?: Finding['repair']) => Finding {
	return (message, fix, repair) => ({ level, message, fix, ...(repair && { repair }) })
}
