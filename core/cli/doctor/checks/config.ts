/** gateway.yaml, and the variables that override it. */
import { existsSync } from 'node:fs'
import { configFile } from '../../../../config/home.ts'
import { readConfig, readText, unknownVariables } from '../../../host/config.ts'
import { isFault } from '../../../errors.ts'
import { checkConfig } from '../../../host/check-config.ts'
import { error, note, NotChecked, ok, warning } from '../contract.ts'
import type { Check, Finding } from '../contract.ts'
import { doctorFiles } from '../doctor-files.ts'
import { troubleOf } from '../gateway.ts'

export const configChecks: Check[] = [
	{
		id: 'config.valid',
		about: 'gateway.yaml and the variables that override it',
		async run({ home, env }) {
			try {
				// The check plugin.failed runs third-party code, in a process of its own.
				await checkConfig(readConfig({ home, env }), { home, env, thirdParties: false })
				const file = configFile(home)
				return ok(existsSync(file) ? `${file} is valid` : `there is no ${file}; the defaults apply`)
			} catch (thrown) {
				if (!isFault(thrown, 'config_invalid')) throw thrown
				// One line for each problem, with its position. No line contains a value.
				return thrown.message
					.split('\n')
					.map((line) => error(line, `change it there, then check: svc doctor --only config.valid`))
			}
		},
	},
	{
		id: 'config.in-force',
		about: 'whether the running gateway uses gateway.yaml as it is now',
		async run(context) {
			const gateway = await context.gateway()
			if (!gateway) return []
			const trouble = await troubleOf(gateway, 'config')
			if (trouble === null) return ok('the running gateway uses gateway.yaml as it is now')
			return error(trouble, 'fix what it names; the file is applied when you save it')
		},
	},
	{
		id: 'config.unknown-env',
		about: 'variables that begin with SVC_',
		async run({ home, env }) {
			const others = (await doctorFiles()).flatMap(({ variables = {} }) => Object.keys(variables))
			const unknown = unknownVariables(env, { text: textOf(home), others })
			if (unknown.length === 0) return ok('every variable that begins with SVC_ is known')
			return unknown.map(({ name, meant }): Finding => {
				if (meant === undefined)
					return note(
						`nothing reads the variable ${name}, unless one of your plugins does`,
						`if none does: unset ${name}`,
					)
				return warning(
					`nothing reads the variable ${name}; ${meant} is probably meant`,
					`set ${meant} instead, and unset ${name}`,
				)
			})
		},
	},
]

function textOf(home: string): string {
	try {
		return readText(configFile(home))
	} catch (thrown) {
		if (!isFault(thrown, 'config_invalid')) throw thrown
		throw new NotChecked('gateway.yaml is refused', 'fix what config.valid reports first')
	}
}
