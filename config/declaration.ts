import type { KeyObject } from 'node:crypto'
import type { ObjectSchema, Root } from 'joi'
import type { Environment } from './home.ts'

/**
 * What a plugin declares about its settings: the default export of `settings.ts` in its folder. A third-party plugin may
 * have `schema` and `check`; the rest is for plugins that come with the gateway. Loaded by `svc config` without the
 * plugin's code, so it imports little.
 */
export interface SettingsDeclaration<Settings = unknown> {
	/** What the section is about: one sentence. */
	description?: string
	/**
	 * The settings, as a joi object with defaults; each has a description of one sentence with its unit and default. The
	 * editors' schema, the example and docs/configuration.md are made from it. Absent: no settings.
	 */
	schema?(joi: Root): ObjectSchema<Settings>
	/** False: the plugin runs only where gateway.yaml has `true` or a setting for it. Default true. */
	onByDefault?: boolean
	/** The paths of its routes. While it is off, a 404 there states how to switch it on. */
	answersAt?: RegExp
	/** True: the gateway cannot run without it. */
	required?: boolean
	/** Names that the plugin had in earlier versions. */
	formerNames?: readonly string[]
	/**
	 * Settings that had another name or place, by their former path in gateway.yaml: `{ 'webhooks.per_min': 'per_minute' }`,
	 * with the setting as in `SettingMistake`. The former path is accepted with a warning. The value means the same in both.
	 */
	renamed?: Readonly<Record<string, string>>
	/** Environment variables that had another name: `{ SVC_FORMER: 'SVC_PRESENT' }`. The former one counts where the present one is not set. */
	renamedVariables?: Readonly<Record<string, string>>
	/** Settings that do not lie in the plugin's section, and their paths: `{ allowed_hosts: 'server.allowed_hosts' }`. All or none. */
	at?: Readonly<Record<string, string>>
	/** Settings of the gateway that the plugin is given too, by the names it sees: `{ host: 'server.host' }`. */
	reads?: Readonly<Record<string, string>>
	/** Settings that are paths, such as `tls.ca_file`: relative ones are made absolute, below the home folder. */
	paths?: readonly string[]
	/** Mistakes in valid values that do not go together. Called where the schema finds nothing wrong. */
	check?(settings: Settings): SettingMistake[]
	/** Values that the environment lays over the file. `settings`: as the file has them, unchecked. */
	environment?(env: Environment, settings: Readonly<Record<string, unknown>>): FromEnvironment[]
	/** Environment variables that the plugin reads, and what each means, in Markdown. */
	variables?: Readonly<Record<string, string>>
	/** Where the settings are in the example and in docs/configuration.md. Default the last one. */
	topic?: Topic
	/** Text for the example in place of what the schema gives, by top-level setting. Settings are switched off by a `#`. */
	examples?: Readonly<Record<string, string>>
	/**
	 * A key that every gateway of an installation has, from which they make what they prove to each other. `home`: the folder.
	 * Throws a Fault that says what to do if there is none, or it cannot be read.
	 */
	installationKey?(home: string, env: Environment): Promise<KeyObject>
	/** Lines for the terminal at the start. `svc` is the command as the reader can type it. */
	banner?(settings: Settings, svc: string): string[]
}

/** `path` is that of the setting within the plugin's settings: `limits.steps`. */
export interface SettingMistake {
	path: string
	message: string
	/** Another setting to point at, in place of the wrong one. */
	pointAt?: string
}

/** A value for a setting, or what is wrong with the variable. */
export type FromEnvironment = {
	/** As in `SettingMistake`. */
	path: string
	/** Absent for a default that holds for this environment. */
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

/** Checks the type of a declaration; answers with it. */
export function defineSettings<Settings>(declaration: SettingsDeclaration<Settings>): SettingsDeclaration<Settings> {
	return declaration
}
