/**
 * Runs the official conformance suite against both sides: the engine of plugins/mcp as a client, and a gateway with
 * plugins/mcp-server as a server. `npm run conformance -- server --scenario ping` runs one side, or one scenario.
 */
import { startGateway } from '../support/gateway.ts'
import { runClientSuite, runServerSuite } from './suite.ts'
import type { Outcome } from './suite.ts'

const [first, ...rest] = process.argv.slice(2)
const side = first === 'client' || first === 'server' ? first : undefined
const options = side ? rest : process.argv.slice(2)

if (side !== 'server') report('client', await runClientSuite(options))
if (side !== 'client') {
	const gateway = await startGateway({ config: 'plugins: {mcp-server: true}\n' })
	report('server', await runServerSuite(gateway.url, options))
	await gateway.stop()
}

function report(name: string, { code, text }: Outcome): void {
	process.stdout.write(text)
	if (code === 0) return
	process.stderr.write(`conformance: the ${name} does not conform\n`)
	process.exitCode = code
}
