import type { KeyObject } from 'node:crypto'
import type { ObjectSchema, Root } from 'joi'
import type { Environment } from './home.ts'

/**
 * What a plugin declares about its settings: the default export of `settings.ts` in its folder. A third-party plugin may have
 * `schema` and `check`; the rest is for built-in plugins. `svc config` loads it without the plugin's code, so it should import
 * little.
 */
export interface SettingsDeclaration<Settings = unknown> {
	/** The purpose of the section: one sentence. */
	description?: string
	/**
	 * The settings, as a joi object with defaults; each has a description of one sentence with its unit and default. The schema for
	 * editors, the example and docs/configuration.md are generated from it. Absent: no settings.
	 */
	schema?(joi: Root): ObjectSchema<Settings>
	/** False: the plugin runs only if gateway.yaml has `true` or a setting for it. Default true. */
	onByDefault?: boolean
	/** Matches the paths of its routes. While the plugin is off, a 404 there says how to switch it on. */
	answersAt?: RegExp
	/** True: the gateway cannot run without it. */
	required?: boolean
	/** Names that the plugin had in earlier versions. */
	formerNames?: readonly string[]
	/**
	 * Settings that had another name or place, by their former path in gateway.yaml: `{ 'webhooks.per_min': 'per_minute' }`,
	 * with the setting as in `SettingMistake`. The former path is accepted with a warning. The value must have the same meaning.
	 */
	renamed?: Readonly<Record<string, string>>
	/** Environment variables that had another name: `{ SVC_FORMER: 'SVC_PRESENT' }`. The former one is used if the present one is not set. */
	renamedVariables?: Readonly<Record<string, string>>
	/** The paths of settings outside the plugin's section: `{ allowed_hosts: 'server.allowed_hosts' }`. All settings or none. */
	at?: Readonly<Record<string, string>>
	/** Settings of the gateway that the plugin gets as well, by the name in its own settings: `{ host: 'server.host' }`. */
	reads?: Readonly<Record<string, string>>
	/** Settings that are paths, such as `tls.ca_file`. Relative ones are resolved against the home folder. */
	paths?: readonly string[]
	/** Reports valid values that contradict each other. Called if the schema finds no problem. */
	check?(settings: Settings): SettingMistake[]
	/** Values from the environment that override the file. `settings`: those of the file, unchecked. */
	environment?(env: Environment, settings: Readonly<Record<string, unknown>>): FromEnvironment[]
	/** Environment variables that the plugin reads, and what each means, in Markdown. */
	variables?: Readonly<Record<string, string>>
	/** Where the settings are in the example and in docs/configuration.md. Default the last one. */
	topic?: Topic
	/** Texts for the example that replace those of the schema, by top-level setting. Settings are commented out by a `#`. */
	examples?: Readonly<Record<string, string>>
	/**
	 * The key that all gateways of an installation share, from which they derive the proofs of their identity. `home`: the folder.
	 * Throws a Fault that says what to do if the key is missing or unreadable.
	 */
	installationKey?(home: string, env: Environment): Promise<KeyObject>
	/** Lines for the startup banner. `svc` is the command as the reader can type it. */
	banner?(settings: Settings, svc: string): string[]
}

/** `path` is that of the setting within the plugin's settings: `limits.steps`. */
export interface SettingMistake {
	path: string
	message: string
	/** Another setting whose position to report instead. */
	pointAt?: string
}

/** A value for a setting, or the problem of the variable. */
export type FromEnvironment = {
	/** As in `SettingMistake`. */
	path: string
	/** Absent for a default that depends on the environment. */
	variable?: string
} & ({ value: unknown } | { problem: string })

/** Headings of the example, in its order. */
export const topics = [
	'Models',
	'Addresses and access',
	'Agents at work',
	'What agents can do',
	'The outside world',
	'Operation',
	'Plugins',
	'Data and log',
] as const

export type Topic = (typeof topics)[number]

/** Gives a declaration its type; at run time it returns its argument. */
export function defineSettings<Settings>(declaration: SettingsDeclaration<Settings>): SettingsDeclaration<Settings> {
	return declaration
}
