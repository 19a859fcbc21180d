import { statSync } from 'node:fs'
import { isHeld } from '../process/lock.ts'
import { readRuntimeFile, runtimeFileOf } from '../process/runtime-file.ts'
import { CliError } from './contract.ts'

const DEFAULT = 'http://127.0.0.1:3000'

export interface AddressBook {
	/**
	 * The address of the gateway, without a slash at its end: `SVC_URL`, else the address in the home's `run/gateway.json`, else
	 * port 3000. Determined for each request, since a restarted gateway may have another port. While the gateway is down, the
	 * last address is kept, so that no request reaches another gateway. Throws `unavailable` if `SVC_HOME` names a home without
	 * a running gateway: a gateway at port 3000 would have another home.
	 */
	url(): string
	/** Call before a request: checks whether the gateway that wrote that file was killed. Another program may have its port now. */
	checkAlive(): Promise<void>
}

/** `env`: may have `SVC_URL` and `SVC_HOME`. `url` throws a usage error for an invalid `SVC_URL`. */
export function addressBook(env: Readonly<NodeJS.ProcessEnv>, home: string): AddressBook {
	let latest: string | undefined
	let wasKilled = false
	return {
		url() {
			latest = env.SVC_URL ? validUrl(env.SVC_URL) : ((wasKilled ? undefined : addressInFile(home)) ?? latest)
			if (latest === undefined && env.SVC_HOME && (wasKilled || isAbsent(runtimeFileOf(home))))
				throw noGateway(home, wasKilled)
			return latest ?? DEFAULT
		},
		async checkAlive() {
			wasKilled = !env.SVC_URL && readRuntimeFile(home)?.pid !== undefined && !(await isHeld(home))
		},
	}
}

/** Undefined if no gateway of this home runs. */
function addressInFile(home: string): string | undefined {
	const url = readRuntimeFile(home)?.url
	try {
		return typeof url === 'string' ? validUrl(url) : undefined
	} catch {
		return undefined
	}
}

/** False if this user may not read the home: an administrator may use the gateway of a closed home. */
function isAbsent(file: string): boolean {
	try {
		statSync(file)
		return false
	} catch (error) {
		return ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')
	}
}

function noGateway(home: string, wasKilled: boolean): CliError {
	const advice =
		'start one with "svc start", or set SVC_HOME to the home of the one you mean, or SVC_URL to its address'
	return new CliError(
		'unavailable',
		`no gateway runs with the home ${home}${wasKilled ? ' (it was killed)' : ''}; ${advice}`,
	)
}

function validUrl(text: string): string {
	const url = URL.parse(text)
	if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash)
		return url.href.replace(/\/+$/, '')
	throw new CliError('usage', 'SVC_URL must be an address such as http://127.0.0.1:3000; a token belongs in SVC_TOKEN')
}
