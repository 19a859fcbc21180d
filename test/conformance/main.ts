/**
 * The official conformance suite against both sides that we have: the engine of plugins/mcp as a client, a gateway with
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
	process.stderr.write(`conformance: the ${name} is not as it should be\n`)
	process.exitCode = code
}
