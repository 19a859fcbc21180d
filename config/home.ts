import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { Fault } from '../core/errors.ts'

/** The type of Node's `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Absolute path of the home folder: SVC_HOME, else `.svc` in the user's own home. Does not create it. A relative SVC_HOME is
 * resolved against `cwd`. Default: the working directory of the process.
 */
export function homeFolder(env: Environment, cwd = ''): string {
	return env.SVC_HOME ? expandPath(env.SVC_HOME, cwd) : join(userHome(), '.svc')
}

/** gateway.yaml of a home folder. */
export function configFile(home: string): string {
	return join(home, 'config', 'gateway.yaml')
}

/** Absolute; a leading `~/` is the user's own home, since neither YAML nor a service manager expands it. */
export function expandPath(path: string, base: string): string {
	return path === '~' || path.startsWith('~/') ? join(userHome(), path.slice(1)) : resolve(base, path)
}

/** An arbitrary user id in a container may have no home. */
function userHome(): string {
	try {
		return homedir()
	} catch (error) {
		throw new Fault('config_invalid', 'this user has no home folder; set SVC_HOME to a folder for the gateway', {
			cause: error,
		})
	}
}
