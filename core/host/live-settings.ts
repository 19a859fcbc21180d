/** The settings of a running gateway: gateway.yaml as it was read last, and as it is in force. */
import { valueAt } from '../../config/composition.ts'
import { appliedAtStart } from '../../config/core-sections.ts'
import { variablesOf, warningsOf } from '../../config/read.ts'
import type { Logger } from '../log/log.ts'
import { digestOf } from '../process/runtime-file.ts'
import type { RuntimeFile } from '../process/runtime-file.ts'
import { configFile, readConfig, readText, withoutSecrets } from './config.ts'
import type { Config, Environment } from './config.ts'
import { desiredState } from './desired-state.ts'
import type { DesiredState } from './desired-state.ts'

export interface LiveSettingsOptions {
	/** In force from the start. */
	first: Config
	home: string
	env: Environment
	log: Logger
	/** Called before the file is read; may throw. */
	check: () => void
}

export function liveSettings({ first, home, env, log, check }: LiveSettingsOptions) {
	const file = configFile(home)
	let latest = first
	let inForce = first
	/** Of the text that was read last. */
	let digest: string | null = null
	/** Already logged: many reloads are not caused by a change of the file. */
	let warned: string[] = []

	return {
		/** As read last. */
		latest: () => latest,
		/** Reads gateway.yaml again. Throws `config_invalid`. `running`: false for the first read, at the start. */
		read(running: boolean): DesiredState {
			digest = null
			check()
			const text = readText(file)
			digest = digestOf(text)
			latest = readConfig({ home, env, text, mustSay: running })
			const warnings = warningsOf(latest)
			for (const line of warnings) if (!warned.includes(line)) log.warn(line)
			warned = warnings
			for (const key of appliedAtStart) {
				if (JSON.stringify(valueAt(latest, key)) !== JSON.stringify(valueAt(first, key)))
					log.warn(`the change of "${key}" takes effect at the next start`)
			}
			return desiredState(latest)
		},
		/** Puts the settings that were read last in force. */
		accept(): void {
			inForce = latest
		},
		/** For the runtime file. `refused`: why the settings that were read last are not in force; null if they are. */
		report: (refused: string | null): RuntimeFile['settings'] => ({
			digest,
			refused,
			in_force: withoutSecrets(inForce) as Record<string, unknown>,
			variables: variablesOf(latest),
		}),
		/** Whether gateway.yaml was changed, or became readable or unreadable, since it was read. */
		isOutdated: (): boolean => digestNow(file) !== digest,
	}
}

function digestNow(file: string): string | null {
	try {
		return digestOf(readText(file))
	} catch {
		return null
	}
}
