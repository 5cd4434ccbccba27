import http from 'node:http';

/**
 * Connections to the servers behind the gateway. Each serves many calls, as a real gateway's do. An idle connection is
 * closed after five seconds: PostgREST closes it after half a minute, and no call should meet a closing one.
 */
export const keptConnections = new http.Agent({ keepAlive: true, timeout: 5_000 });
