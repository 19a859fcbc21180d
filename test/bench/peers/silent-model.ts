/** A model server that accepts requests and never answers. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerWith } from '../peer.ts'

const server = createServer((request) => void request.resume())
server.listen(0, '127.0.0.1')
await once(server, 'listening')

answerWith({ url: () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` })
