import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { ConfigError, messageOf } from './problems.ts'

/** The environment as Node has it. */
export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Absolute path of the home folder: SVC_HOME, else `.svc` in the user's own home. Does not create it. `cwd`: the folder to which a
 * relative SVC_HOME belongs, that of the process where absent.
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

/** A container's made-up user id may have none. */
function userHome(): string {
	try {
		return homedir()
	} catch (error) {
		throw new ConfigError('config_invalid', 'this user has no home folder; set SVC_HOME to a folder for the gateway', {
			cause: messageOf(error),
		})
	}
}
