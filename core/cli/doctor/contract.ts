/**
 * The contract for checks of `svc doctor`. The doctor changes nothing and starts nothing: it asks the API of a running gateway,
 * otherwise it reads the store. The checks of a feature are in `plugins/<name>/doctor.ts`, whose default export is a
 * `DoctorFile`. The same applies to third-party plugins.
 */
import type { LateProblem } from '../../../config/read.ts'
import type { Config } from '../../../config/types.ts'
import type { Store } from '../../store/ports.ts'
import type { StoreVerdict } from './store-process.ts'

/**
 * - `ok`: no problem
 * - `note`: useful to know, but not a problem
 * - `warning`: something will fail, or is less safe than it looks
 * - `error`: something does not work
 */
export type Level = 'ok' | 'note' | 'warning' | 'error'

export interface Finding {
	level: Level
	/** One sentence: the state or the problem. Never a secret. */
	message: string
	/** One sentence: what to do, if possible with a command to copy. Null if nothing has to be done. */
	fix: string | null
	/** Fixes it without touching data; returns one sentence on what was done. */
	repair?(): Promise<string>
}

export interface Check {
	/** Stable, since scripts use it: `family.word`. */
	id: string
	/** What it checks: a few words, for `--list`. */
	about: string
	/** Returns the findings; an empty list if there is nothing to check. Must end within 15 s. */
	run(context: CheckContext): Promise<Finding | Finding[]>
}

/**
 * What a plugin provides for the doctor: the default export of its `doctor.ts`. The file of a third-party plugin is loaded in a
 * separate process, where only `checks` is used. The ids of its checks begin with its name, and it needs no import: a finding is
 * plain data. Plugins add members for each other by declaration merging.
 */
export interface DoctorFile {
	checks?: readonly Check[]
	/** Opens the stored secrets. */
	secrets?(context: CheckContext): Promise<Secrets>
	/** Environment variables that the plugin reads, and whether the value is a secret. */
	variables?: Readonly<Record<string, 'secret' | 'plain'>>
	/** Secrets in the settings themselves, by the label that replaces them in messages. */
	secretsIn?(config: Config): Readonly<Record<string, string>>
	/** Ports that the gateway listens at for the plugin, besides the main one. */
	ports?(config: Config): readonly { setting: string; port: number }[]
	/** Packages with a compiled part that the plugin needs, each with its purpose. */
	packages?: Readonly<Record<string, string>>
	/** For `svc config validate`: checks valid settings on the machine and in the home where they would be used. */
	place?: readonly PlaceCheck[]
}

export interface PlaceCheck {
	/** What it checks: a few words, shown if it cannot check. */
	about: string
	/** `config`: the one to check, which need not be that of `context`. Throws `NotChecked` if it cannot check. */
	run(config: Config, context: CheckContext): Promise<PlaceProblem[]>
}

export interface PlaceProblem extends LateProblem {
	/** The gateway would refuse the configuration. */
	isRefused?: boolean
}

export interface Secrets {
	/** Undefined if no secret has this id or name. `value` is null while a gateway runs: its API returns no values. */
	find(ref: string): Promise<{ value: string | null } | undefined>
}

/** What checks share; each part is created on first use. */
export interface CheckContext {
	readonly home: string
	readonly env: Readonly<NodeJS.ProcessEnv>
	/** The folder of the program. */
	readonly root: string
	readonly limits: DoctorLimits
	/** Aborts when the examination is over. */
	readonly signal: AbortSignal
	/** Throws `NotChecked` if gateway.yaml is refused. */
	config(): Promise<Config>
	/** The gateway that runs with this home; null if none does. */
	gateway(): Promise<RunningGateway | null>
	/** The result of a check of the data file, page by page; also while a gateway runs. Undefined if the file does not exist yet. */
	storeVerdict(): Promise<StoreVerdict | undefined>
	/** The store, read-only, while no gateway runs. Undefined if it does not exist yet. Throws `NotChecked` if it cannot be read. */
	store(): Promise<Store | undefined>
	/** The `doctor.ts` of the built-in plugins that are switched on. */
	doctorFiles(): Promise<DoctorFile[]>
	/** @deprecated The former name of `doctorFiles`. */
	experts(): Promise<DoctorFile[]>
	/** Throws `NotChecked` if they cannot be opened. */
	secrets(): Promise<Secrets>
	/**
	 * A short request to a server that the operator configured, which may be at a private address: at most 10 s and 4 MiB, no
	 * redirects. Throws a Fault that never contains a secret.
	 */
	ask(url: string, request?: Request): Promise<Reply>
	/** The result of `make`, which is called once for all checks. */
	once<T>(key: string, make: () => Promise<T>): Promise<T>
}

export interface Request {
	method?: 'GET' | 'POST'
	headers?: Record<string, string>
	body?: unknown
	/** For an address from a caller: the private addresses that it may reach, as `host` or `host:port`. */
	private_hosts?: readonly string[]
}

export interface Reply {
	status: number
	/** The time in its `Date` header, in ms since 1970; null without one. */
	date: number | null
	/** Parsed JSON; undefined for anything else. */
	body: unknown
}

export interface RunningGateway {
	/** From the lock of the home; may be `unknown`. */
	pid: string
	/** Null if run/gateway.json has no address: the gateway is starting or stopping. */
	url: string | null
	/**
	 * Sends a request to the API, with the token of SVC_TOKEN or svc login. Throws `NotChecked` if the gateway does not respond or
	 * requires a token or scope, and the gateway's own error as a Fault.
	 */
	get<T>(path: string): Promise<T>
	/** The same for a request that changes nothing and needs a body. */
	post<T>(path: string, body: object): Promise<T>
}

/** How long the doctor waits, in ms. */
export type DoctorLimits = Readonly<typeof usualLimits>

/** All others are below `check`. */
export const usualLimits = {
	/** For one check. */
	check: 15_000,
	/** For one request. */
	request: 10_000,
	/** For the code of one third-party plugin, not counting the start of the process that loads it. */
	plugin: 3_000,
	/** For the code of all third-party plugins together. */
	plugins: 12_000,
	/** For the checks of a third-party plugin: to load them, and to run them. */
	thirdParty: 10_000,
	/** For reading the pages of the data file; the remaining ones are not checked. */
	store: 1_500,
}

/** Thrown by a check that cannot be made. It becomes a note that says what to do. */
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
